# The image of the service, and the one with the compiler that fills its cache of machine code. All
# stages use one base, because the environment that the first one builds points at the Python of the
# others. docs/image.md says how to pin it and what the arguments are.
ARG BASE_IMAGE=docker.io/library/python:3.11-slim-bookworm
ARG BUILD_IMAGE=${BASE_IMAGE}

# The dependencies by themselves, so that a change elsewhere in that file installs nothing anew.
FROM ${BUILD_IMAGE} AS requirements
WORKDIR /src
COPY pyproject.toml ./
# Extras of the project that are wanted inside, separated by spaces.
ARG EXTRAS=""
RUN python3 -c "import os, tomllib; \
project = tomllib.load(open('pyproject.toml', 'rb'))['project']; \
extras = [project['optional-dependencies'][name] for name in os.environ['EXTRAS'].split()]; \
print(*sum(extras, project['dependencies']), sep='\n')" > requirements.txt

# What pip fetches: large, and the same for every revision that has the same constraints.
FROM ${BUILD_IMAGE} AS packages
# No version of the compiler: the base image decides which Debian it is, and so which compiler.
# hadolint ignore=DL3008
RUN apt-get update \
    && apt-get install -y --no-install-recommends g++ \
    && rm -rf /var/lib/apt/lists/*
# Package index of a CPU build of torch; without one the default index may bring a CUDA build.
ARG TORCH_INDEX=""
ENV PIP_NO_CACHE_DIR=1 PIP_DISABLE_PIP_VERSION_CHECK=1 PIP_NO_INPUT=1
WORKDIR /src
COPY constraints.txt ./
COPY --from=requirements /src/requirements.txt ./
# The installer has an environment of its own, so that none of it has to be taken out again.
RUN python3 -m venv --without-pip /opt/rancast \
    && python3 -m venv /opt/installer \
    && /opt/installer/bin/pip install -c constraints.txt setuptools \
    && /opt/installer/bin/pip --python /opt/rancast/bin/python install -c constraints.txt \
       ${TORCH_INDEX:+--extra-index-url "${TORCH_INDEX}"} -r requirements.txt
# Then what neither serving nor training reads goes. Torch's headers, and what its compiler imports,
# are put aside for the compiler's image.
RUN site=$(echo /opt/rancast/lib/python3.*/site-packages) \
    && aside="/opt/compiler${site#/opt/rancast}" \
    && /opt/installer/bin/pip install -c constraints.txt --no-deps --target "$aside" setuptools \
    && /opt/installer/bin/pip --python /opt/rancast/bin/python uninstall --yes setuptools \
    && mkdir "$aside/torch" \
    && mv "$site/torch/include" "$aside/torch/" \
    && rm -rf "$site/torch/test" "$site/pyarrow/include" "$site/plotly/labextension" \
    # torch looks for its memory manager when it is imported; the rest of that folder are tools.
    && find "$site/torch/bin" -type f ! -name torch_shm_manager -delete \
    && find "$site" -name '*.dist-info' -prune -o -type d -name tests -prune -exec rm -rf {} + \
    # Arrow's remote calls, which nothing here makes, and names of libraries that only a linker reads.
    && rm -f "$site"/pyarrow/*flight* "$site"/pyarrow/libarrow_python*.so "$site"/pyarrow/*.so.*.*.* \
    # Names of functions that are nobody's interface: they serve a debugger, and are a fifth of torch.
    && strip --strip-unneeded "$site"/torch/lib/*.so "$site"/pyarrow/*.so* "$site"/uvloop/*.so

FROM packages AS build
COPY pyproject.toml README.md LICENSE rancast.py ./
COPY kpi kpi
COPY model model
COPY training training
COPY service service
# Beside the packages, so that it is a layer of its own. -P: of the package as it is installed, not
# of the sources here.
RUN site=$(echo /opt/rancast/lib/python3.*/site-packages) \
    && /opt/installer/bin/pip wheel --no-deps --no-build-isolation --wheel-dir wheels . \
    && /opt/installer/bin/pip --python /opt/rancast/bin/python install --no-deps --no-index \
       --root /opt/staged wheels/*.whl \
    && ln -s "/opt/compiler${site#/opt/rancast}/torch/include" "$site/torch/include" \
    && export PYTHONPATH="/opt/staged$site" \
    && /opt/rancast/bin/python -P -m model.native_code --beside \
    && /opt/rancast/bin/python -P -m service.codecs.native --beside

FROM ${BASE_IMAGE} AS runtime
# Group 0 may write as well, for platforms that choose the user at run time.
RUN groupadd --gid 10001 rancast \
    && useradd --uid 10001 --gid 10001 --no-create-home --home-dir /var/lib/rancast \
       --shell /usr/sbin/nologin rancast \
    && install -d -o 10001 -g 0 -m 0770 /var/lib/rancast /var/cache/rancast
COPY --from=packages /opt/rancast /opt/rancast
COPY --from=build /opt/staged/opt/rancast /opt/rancast
ENV PATH=/opt/rancast/bin:/usr/local/bin:/usr/local/sbin:/usr/sbin:/usr/bin:/sbin:/bin \
    HOME=/var/lib/rancast \
    PYTHONDONTWRITEBYTECODE=1 \
    PYTHONUNBUFFERED=1 \
    RANCAST_HOST=0.0.0.0 \
    RANCAST_PORT=8080 \
    RANCAST_JOURNAL_PATH=/var/lib/rancast/journal.sqlite \
    RANCAST_CACHE_DIR=/var/cache/rancast
# What is inside and under which licences; a licence that nobody has looked at ends the build.
ARG SOURCE_DATE_EPOCH=""
RUN python3 -P -m service.inventory write /opt/rancast
WORKDIR /var/lib/rancast
VOLUME /var/lib/rancast
USER 10001:10001
EXPOSE 8080
STOPSIGNAL SIGTERM
HEALTHCHECK --interval=10s --timeout=5s --start-period=60s --retries=3 \
    CMD ["python3", "-P", "-m", "service.healthcheck"]
ENTRYPOINT ["rancast"]
CMD ["serve"]
# Those that differ from build to build are said by `make image`: buildah takes a LABEL of arguments
# from its cache although they have changed.
ARG VERSION=0.1.0
LABEL org.opencontainers.image.title="rancast" \
      org.opencontainers.image.description="Probabilistic forecasts of radio cell load, inside a latency budget" \
      org.opencontainers.image.licenses="Apache-2.0" \
      org.opencontainers.image.version="${VERSION}"

# The same with a compiler: it runs once for each kind of processor, and fills the folder
# RANCAST_CACHE_DIR, which the service then reads.
FROM runtime AS compiler
USER 0:0
# hadolint ignore=DL3008
RUN apt-get update \
    && apt-get install -y --no-install-recommends g++ \
    && rm -rf /var/lib/apt/lists/*
COPY --from=packages /opt/compiler /opt/rancast
RUN python3 -P -m service.inventory write /opt/rancast
USER 10001:10001
HEALTHCHECK NONE
CMD ["compile"]

# What is built where no target is named.
FROM runtime AS service
