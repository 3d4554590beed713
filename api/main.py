"""`app`, for `uvicorn api.main:app`. Set up by the environment; `reprieve serve` adds limits on headers that uvicorn does not have."""

import logging.config

from api.app import create_app
from api.log import LOGGING
from api.settings import read_settings

logging.config.dictConfig(LOGGING)

app = create_app(read_settings())
