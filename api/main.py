"""`app`, for `uvicorn api.main:app`. Set up by the environment; `reprieve serve` adds limits on headers that uvicorn does not have."""

from api.app import create_app
from api.log import configure
from api.settings import read_settings

configure()

app = create_app(read_settings())
