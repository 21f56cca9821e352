# Upheld in a container, for machines without Linux. Build and run it from a checkout:
#     docker build -t upheld .
#     docker run --rm --init -v "$PWD:/work" -v upheld:/cache upheld run --design path/to/design.toml
# BASE is any image with Python 3.11 or newer and its module venv.
ARG BASE=python:3.13-slim
FROM ${BASE} AS built
# Extras, with spaces between them; docs/extras.md lists them.
ARG EXTRAS="java redis"
# Where pip finds packages while the image is built; without them it asks its usual index.
ARG PIP_INDEX_URL
ARG PIP_FIND_LINKS
ARG PIP_NO_INDEX
COPY . /source
WORKDIR /source
RUN set -e; \
    files="-r constraints.txt"; \
    for extra in $EXTRAS; do files="$files -r constraints-$extra.txt"; done; \
    python3 -m venv /opt/upheld; \
    pip="/opt/upheld/bin/python -m pip --quiet --disable-pip-version-check --no-cache-dir"; \
    $pip install --no-compile --require-hashes $files; \
    $pip install --no-compile --no-deps --no-build-isolation .; \
    $pip uninstall --yes pip

FROM ${BASE}
COPY --from=built /opt/upheld /opt/upheld
ENV PATH=/opt/upheld/bin:$PATH XDG_CACHE_HOME=/cache
WORKDIR /work
ENTRYPOINT ["upheld"]
