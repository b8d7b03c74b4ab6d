# The agent, and of Debian 12 what it is linked with. scripts/image builds it, also where no registry is reachable.
ARG BASE=debian:bookworm-slim

FROM ${BASE} AS build
WORKDIR /plumbline
# Alone, so that this layer stays until the list of packages changes.
COPY scripts/packages scripts/lib.sh scripts/
RUN scripts/packages build
COPY . .
RUN cmake --preset release && cmake --build --preset release --target plumbline-agent
RUN scripts/image-root /image build/release/bin/plumbline-agent

FROM scratch
COPY --from=build /image /
ENTRYPOINT ["/usr/bin/plumbline-agent"]
