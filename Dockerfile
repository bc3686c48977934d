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
HEALTHCHECK --interval=10s --timeout=3s --start-period=5s \
    CMD ["python", "-c", "import urllib.request; urllib.request.urlopen('http://127.0.0.1:8081/health', timeout=2)"]
ENTRYPOINT ["twolane"]
# Mount a settings file there; it has to say `listen: 0.0.0.0:8080` and to have `keys` (or `insecure: true`), so that
# others reach the router from outside.
CMD ["serve", "-c", "/etc/twolane/twolane.yaml"]
