"""A small Hugging Face Hub on this machine, for the real client: its HTTP API over a dictionary.

Files that the Hub keeps in large file storage are served as it does: the repository redirects to
another host, which knows ranges.
"""

import base64
import hashlib
import json
import re
import socket
import threading
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from urllib.parse import unquote, urlsplit

READER, OWNER = "hf_reader", "hf_owner"  # tokens: one may read what is public, one may do all
LARGE = (".safetensors", ".bin", ".pt")  # suffixes of files that are stored apart


def git_oid(content: bytes) -> str:
    return hashlib.sha1(b"blob %d\0" % len(content) + content).hexdigest()


def sha256(content: bytes) -> str:
    return hashlib.sha256(content).hexdigest()


@dataclass
class Repo:
    """Commits hold all files; branches and tags point to commits."""

    private: bool = False
    gated: bool = False
    commits: dict[str, dict[str, bytes]] = field(default_factory=dict)
    refs: dict[str, str] = field(default_factory=dict)
    messages: list[str] = field(default_factory=list)

    def commit(self, branch: str, changes: Mapping[str, bytes | None], message: str = "") -> str:
        """Adds a commit; a file that changes to None is removed."""
        changed = {**self.commits.get(self.refs.get(branch, ""), {}), **changes}
        files = {name: content for name, content in changed.items() if content is not None}
        listed = [branch, len(self.commits), *sorted((n, sha256(c)) for n, c in files.items())]
        sha = hashlib.sha1(json.dumps(listed).encode()).hexdigest()
        self.commits[sha] = files
        self.refs[branch] = sha
        self.messages.append(message)
        return sha


class HubServer(ThreadingHTTPServer):
    """The Hub, until `close`.

    Attributes:
        repos: By name.
        asked: `METHOD path` of every request.
        ranges: `Range` of every request that had one.
        failing: Status that every request gets; 0: none.
        cuts: How often to break the connection after half of a file, by its name.
        storage: Large files by SHA-256.
    """

    daemon_threads = True

    def __init__(self) -> None:
        super().__init__(("127.0.0.1", 0), Handler)
        self.repos: dict[str, Repo] = {}
        self.asked: list[str] = []
        self.ranges: list[str] = []
        self.failing = 0
        self.cuts: Counter[str] = Counter()
        self.storage: dict[str, bytes] = {}
        self.url = f"http://127.0.0.1:{self.server_port}"
        self.storage_url = f"http://localhost:{self.server_port}"  # another host, for the client
        threading.Thread(target=self.serve_forever, args=(0.01,), daemon=True).start()

    def publish(self, name: str, files: Mapping[str, bytes], branch: str = "main", **kind) -> str:
        repo = self.repos.setdefault(name, Repo(**kind))
        self.storage |= {sha256(c): c for n, c in files.items() if n.endswith(LARGE)}
        return repo.commit(branch, files)

    def files(self, name: str, branch: str = "main") -> dict[str, bytes]:
        repo = self.repos[name]
        return repo.commits[repo.refs[branch]]

    def fetched(self) -> list[str]:
        """Names of the files whose content was asked for, in order."""
        pattern = r"GET /(?:[^/]+/[^/]+/resolve|storage)/[^/]+/(.+)"
        found = [re.fullmatch(pattern, asked) for asked in self.asked]
        return [unquote(match[1]) for match in found if match]

    def close(self) -> None:
        self.shutdown()
        self.server_close()


@dataclass(eq=False)
class HttpError(Exception):
    status: int
    code: str = ""
    message: str = ""


class Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    server: HubServer

    def log_message(self, *_):
        pass

    def setup(self):
        super().setup()
        self.connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)

    def answer(self, status, content=b"", headers=()):
        content = content if isinstance(content, bytes) else json.dumps(content).encode()
        self.send_response(status)
        for name, value in {"Content-Length": str(len(content)), **dict(headers)}.items():
            self.send_header(name, value)
        self.end_headers()
        if self.command != "HEAD":
            self.wfile.write(content)

    def route(self):
        length = int(self.headers.get("Content-Length") or 0)
        self.body = self.rfile.read(length)
        path = urlsplit(self.path).path
        self.server.asked.append(f"{self.command} {path}")
        if "Range" in self.headers:
            self.server.ranges.append(self.headers["Range"])
        try:
            if self.server.failing:
                raise HttpError(self.server.failing)
            for methods, pattern, action in ROUTES:
                if self.command in methods and (match := re.fullmatch(pattern, path)):
                    action(self, *map(unquote, match.groups()))
                    return
            raise HttpError(404)
        except HttpError as error:
            headers = {"X-Error-Code": error.code, "X-Error-Message": error.message}
            said = {name: value for name, value in headers.items() if value}
            self.answer(error.status, {"error": error.message}, said)

    do_GET = do_HEAD = do_POST = do_PUT = route  # noqa: N815

    def user(self):
        """The token; None without one."""
        token = self.headers.get("Authorization", "").removeprefix("Bearer ") or None
        if token not in (None, READER, OWNER):
            raise HttpError(401, "", "Invalid credentials in Authorization header")
        return token

    def repo(self, name):
        repo = self.server.repos.get(name)
        if repo is None or (repo.private and self.user() != OWNER):
            raise HttpError(404 if self.user() else 401, "RepoNotFound", "Repository not found")
        return repo

    def commit_of(self, repo, revision):
        sha = repo.refs.get(revision, revision)
        if sha not in repo.commits:
            raise HttpError(404, "RevisionNotFound", f"Invalid rev id: {revision}")
        return sha

    def writable(self, name):
        if self.user() is None:
            raise HttpError(401, "", "Invalid username or password.")
        repo = self.repo(name)
        if self.user() != OWNER:
            raise HttpError(403, "", "You don't have the rights to write to this repository")
        return repo

    def info(self, name, revision="main"):
        repo = self.repo(name)
        sha = self.commit_of(repo, revision)
        files = repo.commits[sha].items()
        siblings = [{"rfilename": file, "size": len(content)} for file, content in files]
        self.answer(200, {"id": name, "sha": sha, "private": repo.private, "siblings": siblings})

    def tree(self, name, revision):
        repo = self.repo(name)
        rows = []
        for path, content in repo.commits[self.commit_of(repo, revision)].items():
            row = {"type": "file", "path": path, "size": len(content), "oid": git_oid(content)}
            if path.endswith(LARGE):
                row["lfs"] = {"oid": sha256(content), "size": len(content), "pointerSize": 130}
            rows.append(row)
        self.answer(200, rows)

    def resolve(self, name, revision, path):
        repo = self.repo(name)
        if repo.gated and self.user() != OWNER:
            raise HttpError(403 if self.user() else 401, "GatedRepo", "Access is restricted")
        sha = self.commit_of(repo, revision)
        if (content := repo.commits[sha].get(path)) is None:
            raise HttpError(404, "EntryNotFound", "Entry not found")
        headers = {"X-Repo-Commit": sha}
        if not path.endswith(LARGE):
            self.send_file(content, path, {**headers, "ETag": f'"{git_oid(content)}"'})
            return
        linked = {"X-Linked-Etag": f'"{sha256(content)}"', "X-Linked-Size": str(len(content))}
        place = {"Location": f"{self.server.storage_url}/storage/{sha256(content)}/{path}"}
        self.answer(302, b"", headers | linked | place)

    def stored(self, oid, path):
        if "Authorization" in self.headers:
            raise HttpError(400, "", "a token was sent to another host")
        content = self.server.storage[oid]
        self.send_file(content, path, {"ETag": f'"{oid}"', "Accept-Ranges": "bytes"})

    def send_file(self, content, path, headers):
        start = int(re.fullmatch(r"bytes=(\d+)-", self.headers.get("Range", "bytes=0-"))[1])
        status = 206 if start else 200
        if start:
            headers["Content-Range"] = f"bytes {start}-{len(content) - 1}/{len(content)}"
        if self.command == "HEAD" or not self.server.cuts[path]:
            self.answer(status, content[start:], headers)
            return
        self.server.cuts[path] -= 1
        self.close_connection = True
        whole = {"Content-Length": str(len(content) - start)}
        self.answer(status, content[start : (start + len(content)) // 2], headers | whole)

    def create(self):
        wanted = json.loads(self.body)
        if self.user() != OWNER:
            status = 403 if self.user() else 401
            raise HttpError(status, "", "You don't have the rights to create it")
        name = f"{wanted['organization']}/{wanted['name']}"
        answer = {"url": f"{self.server.url}/{name}", "name": name}
        if name in self.server.repos:
            self.answer(409, answer | {"error": "You already created this model repo"})
            return
        private = wanted.get("visibility") == "private" or wanted.get("private", False)
        repo = self.server.repos[name] = Repo(private=private)
        repo.commit("main", {".gitattributes": b"*.safetensors filter=lfs\n"}, "initial commit")
        self.answer(200, answer)

    def validate_card(self):
        text = json.loads(self.body)["content"]
        errors = [] if text.startswith("---\n") else [{"message": "metadata is required"}]
        self.answer(400 if errors else 200, {"errors": errors, "warnings": []})

    def branch(self, name, branch):
        repo = self.writable(name)
        if branch in repo.refs:
            raise HttpError(409, "", "Reference already exists")
        repo.refs[branch] = repo.refs["main"]
        self.answer(200, {})

    def preupload(self, name, revision):
        repo = self.writable(name)
        files = repo.commits[self.commit_of(repo, revision)]
        rows = []
        for file in json.loads(self.body)["files"]:
            path = file["path"]
            mode, oid_of = ("lfs", sha256) if path.endswith(LARGE) else ("regular", git_oid)
            oid = oid_of(files[path]) if path in files else None
            rows.append({"path": path, "uploadMode": mode, "shouldIgnore": False, "oid": oid})
        self.answer(200, {"files": rows})

    def lfs_batch(self, name):
        self.writable(name)
        objects = []
        for row in json.loads(self.body)["objects"]:
            upload = {"upload": {"href": f"{self.server.storage_url}/upload/{row['oid']}"}}
            known = row["oid"] in self.server.storage
            objects.append(row | ({} if known else {"actions": upload}))
        self.answer(200, {"transfer": "basic", "objects": objects})

    def upload(self, oid):
        if sha256(self.body) != oid:
            raise HttpError(400, "", "another content than announced")
        self.server.storage[oid] = self.body
        self.answer(200)

    def add_commit(self, name, branch):
        repo = self.writable(name)
        self.commit_of(repo, branch)
        rows = [json.loads(line) for line in self.body.splitlines()]
        contents = {
            "file": lambda value: base64.b64decode(value["content"]),
            "lfsFile": lambda value: self.server.storage[value["oid"]],
            "deletedFile": lambda value: None,
        }
        changes = {r["value"]["path"]: contents[r["key"]](r["value"]) for r in rows[1:]}
        sha = repo.commit(branch, changes, rows[0]["value"]["summary"])
        url = f"{self.server.url}/{name}/commit/{sha}"
        self.answer(200, {"commitUrl": url, "commitOid": sha})


NAME = "([^/]+/[^/]+)"
ROUTES = (
    (("GET",), f"/api/models/{NAME}", Handler.info),
    (("GET",), f"/api/models/{NAME}/revision/([^/]+)", Handler.info),
    (("GET",), f"/api/models/{NAME}/tree/([^/]+)", Handler.tree),
    (("GET", "HEAD"), f"/{NAME}/resolve/([^/]+)/(.+)", Handler.resolve),
    (("GET",), "/storage/([^/]+)/(.+)", Handler.stored),
    (("POST",), "/api/repos/create", Handler.create),
    (("POST",), "/api/validate-yaml", Handler.validate_card),
    (("POST",), f"/api/models/{NAME}/branch/([^/]+)", Handler.branch),
    (("POST",), f"/api/models/{NAME}/preupload/([^/]+)", Handler.preupload),
    (("POST",), f"/{NAME}\\.git/info/lfs/objects/batch", Handler.lfs_batch),
    (("PUT",), "/upload/([^/]+)", Handler.upload),
    (("POST",), f"/api/models/{NAME}/commit/([^/]+)", Handler.add_commit),
)
