"""Control of the prosody of texts: factors, transforms, contours, and pitch that is given."""
