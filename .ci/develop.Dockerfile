# .ci/develop.Dockerfile: Debian 12 with everything that `./run` wants, and the CUDA toolkit for the plugin cuda.
#   docker build -f .ci/develop.Dockerfile -t adjoin-develop . && docker run -it --gpus all -v "$PWD:/adjoin" adjoin-develop
FROM nvidia/cuda:12.6.3-cudnn-devel-ubuntu24.04 AS toolkit
RUN mkdir /headers && cp -L /usr/include/cudnn*.h /usr/include/x86_64-linux-gnu/cudnn*.h /headers/

FROM debian:12
COPY --from=toolkit /usr/local/cuda-12.6 /usr/local/cuda
COPY --from=toolkit /headers/ /usr/local/cuda/include/
# The packages of `run`, and what a bare image lacks to clone and to fetch.
RUN apt-get update && DEBIAN_FRONTEND=noninteractive apt-get install -y --no-install-recommends \
    ca-certificates git \
    ccache clang clang-format clang-tidy g++ hipcc libbenchmark-dev libblas3 libblis4-serial libboost-context-dev libboost-dev \
    libboost-program-options-dev libclang-rt-dev libdnnl-dev libgloo-dev libgtest-dev libhwy-dev libopenblas0-pthread libopenmpi-dev meson ninja-build \
    openmpi-bin pkg-config python3-dev python3-venv luajit shellcheck \
    && rm -rf /var/lib/apt/lists/*
ENV PATH=/usr/local/cuda/bin:$PATH
WORKDIR /adjoin
CMD ["bash"]
