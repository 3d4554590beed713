# One image: the extender, and the command line tools.
FROM python:3.13-slim AS build
WORKDIR /build
RUN ["python", "-m", "venv", "/opt/reprieve"]
COPY requirements.lock .
RUN ["/opt/reprieve/bin/pip", "install", "--no-cache-dir", "--require-hashes", "--only-binary", ":all:", "-r", "requirements.lock"]
COPY pyproject.toml README.md LICENSE ./
COPY extender extender
COPY api api
RUN ["/opt/reprieve/bin/pip", "install", "--no-cache-dir", "--no-deps", "."]

FROM python:3.13-slim
COPY --from=build /opt/reprieve /opt/reprieve
# Nothing is written to disk, so that the root file system may be read-only.
ENV PYTHONDONTWRITEBYTECODE=1 PYTHONUNBUFFERED=1 PATH=/opt/reprieve/bin:$PATH
USER 65532:65532
EXPOSE 8888
ENTRYPOINT ["reprieve"]
CMD ["serve", "--host", "0.0.0.0", "--port", "8888"]
