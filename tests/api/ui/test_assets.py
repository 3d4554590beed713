"""The page's files: there, typed, and named after what is in them."""

import re
from pathlib import Path

import pytest

from api.ui.frame import assets

FOLDER = Path(__file__).parents[3] / "api" / "ui"


def test_every_file_has_a_type_that_browsers_believe() -> None:
    assert {name: asset.media_type.partition(";")[0] for name, asset in assets().files.items()} == {
        "page.css": "text/css",
        "icon.svg": "image/svg+xml",
        **{path.name: "text/javascript" for path in (FOLDER / "static").glob("*.js")},
    }


def test_a_path_names_the_version_of_all_files() -> None:
    assert re.fullmatch(r"/ui/static/[0-9a-f]{16}/page\.css", assets().path("page.css"))
    with pytest.raises(LookupError):
        assets().path("nothing.css")


def test_scripts_and_styles_load_nothing_from_elsewhere() -> None:
    for asset in assets().files.values():
        text = asset.content.decode().replace("http://www.w3.org/2000/svg", "")
        assert not re.search(r"https?:|//[a-z]+\.[a-z]+/|@import|url\((?!#)", text)


def test_every_class_of_a_scale_has_a_colour() -> None:
    css = assets().files["page.css"].content.decode()

    scales = {"p": 7, "u": 10, "c": 8, "on-p": 7}
    for name in [f"{scale}{step}" for scale, steps in scales.items() for step in range(steps)]:
        assert re.search(rf"\.{name} {{ fill: var\(--", css), name


def test_every_colour_is_defined_for_light_and_dark() -> None:
    css = assets().files["page.css"].content.decode()

    sizes = {"--small", "--text", "--large", "--title", "--head"}
    defined_names = set(re.findall(r"(--[\w-]+): light-dark\(", css)) | {"--shadow"} | sizes

    assert set(re.findall(r"var\((--[\w-]+)\)", css)) <= defined_names
