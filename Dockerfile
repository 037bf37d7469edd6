# syntax=docker/dockerfile:1
# Lazaret's server with its browser bundle. `docker build -t lazaret .`
# It wants DATABASE_URL and LAZARET_BASE_URL (docs/operate/configure.md).
FROM rust:1.95-bookworm AS build
WORKDIR /lazaret
COPY . .
ENV SQLX_OFFLINE=true
RUN --mount=type=cache,target=/usr/local/cargo/registry \
    --mount=type=cache,target=/lazaret/target \
    --mount=type=cache,target=/root/.cache/lazaret \
    cargo xtask build \
 && cp -r target/site /site && cp target/release/lazaret /usr/local/bin/lazaret

FROM debian:12-slim
RUN useradd --system --no-create-home --shell /usr/sbin/nologin lazaret
COPY --from=build /usr/local/bin/lazaret /usr/local/bin/lazaret
COPY --from=build /site /usr/share/lazaret/site
ENV LAZARET_LISTEN=0.0.0.0:8080 LAZARET_SITE_DIR=/usr/share/lazaret/site
USER lazaret
EXPOSE 8080
ENTRYPOINT ["lazaret"]
CMD ["serve"]
