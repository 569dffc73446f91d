# .ci/runtime.Dockerfile: Python with the wheel, OpenBLAS and oneDNN; no compiler.
#   docker build -f .ci/runtime.Dockerfile -t adjoin . && docker run -it adjoin python3
FROM debian:12 AS build
RUN apt-get update && DEBIAN_FRONTEND=noninteractive apt-get install -y --no-install-recommends \
    ca-certificates git \
    ccache clang clang-format clang-tidy g++ hipcc libbenchmark-dev libblas3 libblis4-serial libboost-context-dev libboost-dev \
    libboost-program-options-dev libclang-rt-dev libdnnl-dev libgloo-dev libgtest-dev libhwy-dev libopenblas0-pthread libopenmpi-dev meson ninja-build \
    openmpi-bin pkg-config python3-dev python3-venv luajit shellcheck \
    && rm -rf /var/lib/apt/lists/*
WORKDIR /adjoin
COPY . .
RUN ./run wheel

FROM debian:12
RUN apt-get update && DEBIAN_FRONTEND=noninteractive apt-get install -y --no-install-recommends \
    libdnnl2 libopenblas0-pthread python3 python3-venv \
    && rm -rf /var/lib/apt/lists/* && python3 -m venv /opt/adjoin
ENV PATH=/opt/adjoin/bin:$PATH
COPY --from=build /adjoin/build/wheels/*.whl /tmp/
RUN pip install --no-index /tmp/*.whl && rm /tmp/*.whl && adjoin doctor
CMD ["python3"]
