# One image: the extender, and the command line tools.
# Tag and digest go together; `docker buildx imagetools inspect python:3.13-slim-trixie` prints the digest of a newer one.
FROM python:3.13.15-slim-trixie@sha256:7c61056e61ac89e852de05f3dc6fa51a6dd2181797bceed46aa725dd7cb2cd3b AS base

FROM base AS build
WORKDIR /build
ENV PIP_NO_CACHE_DIR=1 PIP_ONLY_BINARY=:all: PIP_REQUIRE_HASHES=1
# What builds the wheel is pinned as what runs it, and is left behind.
COPY requirements.txt requirements-build.txt ./
RUN pip install -r requirements-build.txt \
    && python -m venv --without-pip /opt/reprieve \
    && pip --python /opt/reprieve install -r requirements.txt
COPY pyproject.toml README.md LICENSE ./
COPY extender extender
COPY api api
COPY reprieve reprieve
RUN hatchling build -t wheel -d dist \
    && PIP_REQUIRE_HASHES=0 pip --python /opt/reprieve install --no-deps --no-index dist/*.whl

FROM base
COPY --from=build /opt/reprieve /opt/reprieve
# It listens where `docker run -p` reaches it, and asks callers who they are; one that cannot know says what to add:
# docker run -p 8888:8888 -p 8080:8080 -e REPRIEVE_ACCESS=open reprieve
# Nothing is written to disk, so that the root file system may be read-only.
ENV PYTHONDONTWRITEBYTECODE=1 PYTHONUNBUFFERED=1 PATH=/opt/reprieve/bin:$PATH
LABEL org.opencontainers.image.title=Reprieve \
      org.opencontainers.image.description="A Kubernetes scheduler in Python: a scheduler extender, and a scheduler of its own" \
      org.opencontainers.image.licenses=Apache-2.0
USER 65532:65532
EXPOSE 8888 8080
ENTRYPOINT ["reprieve"]
CMD ["serve", "--host", "0.0.0.0"]
