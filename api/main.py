"""`app` for `uvicorn api.main:app`, set up by the environment; `reprieve serve` adds limits on headers."""

from extender.values.concurrency.process import fill_standard_descriptors, loading_modules

with loading_modules():  # there is no garbage while modules are loaded
    from api.app import create_app
    from api.serving.other_servers import opens, settings_of_environment
    from extender.values.klog.setup import configure

fill_standard_descriptors()
configure()

app = create_app(settings_of_environment(), opens)
