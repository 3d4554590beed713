"""Each row of the catalogue finds what answers it, and no route about names of pods is open to strangers."""

import inspect
from typing import Any, get_type_hints

import pytest
from fastapi.routing import APIRoute

from api.callers.guards import asks_its_caller_itself
from api.routes import page
from api.routes.caller import Caller, caller_of
from api.routing import ROUTERS
from extender.answers import catalogue
from extender.answers.catalogue import QUESTIONS, Question
from extender.answers.questions import Questions
from extender.answers.types import WhatIfRequest
from reprieve.lab.agreement import AgreementQuestion
from reprieve.lab.plan.plan_answer import PlanAnswer, PlanRequest
from reprieve.lab.plan.plan_question import PlanQuestion

EVERY_QUESTION = pytest.mark.parametrize("kind", QUESTIONS, ids=lambda kind: kind.row.method)


def plan_of(self: Questions, request: PlanRequest) -> PlanAnswer:
    """The plan is searched by the lab, in the cluster of the questions."""
    return PlanQuestion(request=request).ask(self)


@EVERY_QUESTION
def test_every_row_finds_a_method_with_its_fields_and_its_answer(kind: type[Question[Any]]) -> None:
    answering = Caller if kind in (catalogue.AboutQuestion, AgreementQuestion) else Questions
    method = plan_of if kind is PlanQuestion else getattr(answering, kind.row.method)

    _, *parameters = inspect.signature(method).parameters.values()
    names = {parameter.name for parameter in parameters if parameter.kind is not inspect.Parameter.VAR_KEYWORD}
    extra = {"visibility"} if kind.row.chooses_names else set()
    is_open = any(parameter.kind is inspect.Parameter.VAR_KEYWORD for parameter in parameters)
    assert names == extra if is_open else names == {*kind.__struct_fields__} | extra
    assert get_type_hints(method)["return"] == kind.answer_type()


def test_every_route_about_names_of_pods_knows_its_caller() -> None:
    """
    Those that the guard lets through without asking who calls, but for the form to sign in and what it needs.
    """
    let_through = [
        route
        for router in ROUTERS
        for route in router.routes
        if isinstance(route, APIRoute) and asks_its_caller_itself(route.path)
    ]

    strangers = [
        route
        for route in let_through
        if caller_of not in {dependency.call for dependency in route.dependant.dependencies}
    ]
    assert len(let_through) > len(QUESTIONS) + 10
    assert strangers == page.open_to_all.routes


def test_a_question_is_sent_as_its_row_says() -> None:
    explain = catalogue.ExplainQuestion(namespace="a/b", pod="c d", picture=True)
    find = catalogue.FindQuestion(query="web", limit=5)
    what_if = catalogue.WhatIfQuestion(request=WhatIfRequest(drain_nodes=["n"]))

    assert explain.address() == ("GET", "/v1/explain/a%2Fb/c%20d", {"picture": "true"})
    assert find.address() == ("GET", "/v1/find", {"q": "web", "limit": "5"})
    assert what_if.address() == ("POST", "/v1/whatif", {})
