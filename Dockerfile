# The image of the service, and the one with the compiler that fills its cache of machine code. All
# stages use one base, because the environment that the first one builds points at the Python of the
# others.
ARG BASE_IMAGE=docker.io/library/python:3.11-slim-bookworm
ARG BUILD_IMAGE=${BASE_IMAGE}

FROM ${BUILD_IMAGE} AS build
# No version of the compiler: the base image decides which Debian it is, and so which compiler.
# hadolint ignore=DL3008
RUN apt-get update \
    && apt-get install -y --no-install-recommends g++ \
    && rm -rf /var/lib/apt/lists/*
# Package index of a CPU build of torch; without one the default index may bring a CUDA build.
ARG TORCH_INDEX=""
ENV PIP_NO_CACHE_DIR=1 PIP_DISABLE_PIP_VERSION_CHECK=1 PIP_NO_INPUT=1
WORKDIR /src
RUN python3 -m venv /opt/rancast
COPY constraints.txt pyproject.toml ./
# The dependencies alone first: this layer is the large one, and changes rarely.
RUN /opt/rancast/bin/python -c "import tomllib; \
print(*tomllib.load(open('pyproject.toml', 'rb'))['project']['dependencies'], sep='\n')" > requirements.txt \
    && /opt/rancast/bin/pip install -c constraints.txt \
       ${TORCH_INDEX:+--extra-index-url "${TORCH_INDEX}"} setuptools -r requirements.txt
COPY README.md LICENSE rancast.py ./
COPY kpi kpi
COPY model model
COPY training training
COPY service service
# -P: of the package as it is installed, not of the sources here.
RUN /opt/rancast/bin/pip install --no-deps --no-build-isolation . \
    && /opt/rancast/bin/python -P -m model.native_code --beside \
    && /opt/rancast/bin/python -P -m service.codecs.native --beside
# Then what only building and testing need goes: torch's own tests, pip. Torch's headers, and what its
# compiler imports, are put aside for the compiler's image.
RUN site=$(echo /opt/rancast/lib/python3.*/site-packages) \
    && aside="/opt/compiler${site#/opt/rancast}" \
    && /opt/rancast/bin/pip install -c constraints.txt --no-deps --target "$aside" setuptools \
    && mkdir "$aside/torch" \
    && mv "$site/torch/include" "$aside/torch/" \
    && rm -rf "$site/torch/test" "$site/pyarrow/include" "$site/pyarrow/tests" \
    # torch looks for its memory manager when it is imported; the rest of that folder are tools.
    && find "$site/torch/bin" -type f ! -name torch_shm_manager -delete \
    && /opt/rancast/bin/pip uninstall --yes setuptools pip

FROM ${BASE_IMAGE} AS runtime
ARG VERSION=0.1.0
ARG REVISION=""
LABEL org.opencontainers.image.title="rancast" \
      org.opencontainers.image.description="Probabilistic forecasts of radio cell load, inside a latency budget" \
      org.opencontainers.image.licenses="Apache-2.0" \
      org.opencontainers.image.version="${VERSION}" \
      org.opencontainers.image.revision="${REVISION}"
# Group 0 may write as well, for platforms that choose the user at run time.
RUN groupadd --gid 10001 rancast \
    && useradd --uid 10001 --gid 10001 --no-create-home --home-dir /var/lib/rancast \
       --shell /usr/sbin/nologin rancast \
    && install -d -o 10001 -g 0 -m 0770 /var/lib/rancast /var/cache/rancast
COPY --from=build /opt/rancast /opt/rancast
ENV PATH=/opt/rancast/bin:/usr/local/bin:/usr/local/sbin:/usr/sbin:/usr/bin:/sbin:/bin \
    PYTHONDONTWRITEBYTECODE=1 \
    PYTHONUNBUFFERED=1 \
    RANCAST_HOST=0.0.0.0 \
    RANCAST_PORT=8080 \
    RANCAST_JOURNAL_PATH=/var/lib/rancast/journal.sqlite \
    RANCAST_CACHE_DIR=/var/cache/rancast
WORKDIR /var/lib/rancast
VOLUME /var/lib/rancast
USER 10001:10001
EXPOSE 8080
STOPSIGNAL SIGTERM
HEALTHCHECK --interval=10s --timeout=5s --start-period=60s --retries=3 \
    CMD ["python3", "-P", "-m", "service.healthcheck"]
ENTRYPOINT ["rancast"]
CMD ["serve"]

# The same with a compiler: it runs once for each kind of processor, and fills the folder
# RANCAST_CACHE_DIR, which the service then reads.
FROM runtime AS compiler
USER 0:0
# hadolint ignore=DL3008
RUN apt-get update \
    && apt-get install -y --no-install-recommends g++ \
    && rm -rf /var/lib/apt/lists/*
COPY --from=build /opt/compiler /opt/rancast
USER 10001:10001
HEALTHCHECK NONE
CMD ["compile"]

# What is built where no target is named.
FROM runtime AS service
