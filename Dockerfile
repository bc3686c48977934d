# The build stage installs as the README says; the final stage takes the result and nothing that built it.
FROM python:3.13-slim AS build
WORKDIR /source
COPY pyproject.toml README.md ./
COPY classifiers classifiers
COPY policies policies
COPY router router
RUN python -m venv /opt/twolane
ENV PATH=/opt/twolane/bin:$PATH
RUN pip install --no-cache-dir .
RUN pip uninstall --yes pip

FROM python:3.13-slim
COPY --from=build /opt/twolane /opt/twolane
ENV PATH=/opt/twolane/bin:$PATH PYTHONUNBUFFERED=1
USER 10001:10001
WORKDIR /etc/twolane
EXPOSE 8080 8081
# Asks where the settings file says that the admin port is, be it with TLS, on a socket, or not there at all.
HEALTHCHECK --interval=30s --timeout=5s --start-period=10s \
    CMD ["twolane", "health", "-c", "/etc/twolane/twolane.yaml"]
ENTRYPOINT ["twolane"]
# Mount a settings file there; it has to say `listen: 0.0.0.0:8080` and to have `keys` (or `insecure: true`), so that
# others reach the router from outside. The admin port stays inside of the container unless the file says
# `admin: 0.0.0.0:8081` and has an `admin_key`.
CMD ["serve", "-c", "/etc/twolane/twolane.yaml"]
