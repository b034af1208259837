# The command `arion` in a container: docs/docker.md. On a machine with an NVIDIA GPU:
# --build-arg TORCH="torch==2.13.0 --index-url https://download.pytorch.org/whl/cu128"
FROM python:3.12-slim

ARG TORCH="torch==2.13.0 --index-url https://download.pytorch.org/whl/cpu"
# hadolint ignore=DL3013,SC2086
RUN pip install --no-cache-dir ${TORCH}

WORKDIR /arion
COPY . .
# What is trained, downloaded or cached can be written by every user: docker run --user
RUN grep -v '^torch==' constraints.txt > /tmp/constraints.txt \
    && pip install --no-cache-dir -c /tmp/constraints.txt -e '.[serve]' \
    && rm /tmp/constraints.txt \
    && useradd --create-home --uid 1000 arion \
    && install -d -m 1777 ckpts data pretrained /cache
ENV HF_HOME=/cache/huggingface MPLCONFIGDIR=/cache/matplotlib NUMBA_CACHE_DIR=/cache/numba

USER 1000
# The build fails unless the bundled voice speaks.
RUN arion doctor
ENTRYPOINT ["arion"]
CMD ["--help"]
