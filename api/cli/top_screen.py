"""The screen of `reprieve top`. It needs the extra `top`, and so nothing else imports it."""

from typing import ClassVar, Final, final

from textual.app import App, ComposeResult
from textual.binding import Binding, BindingType
from textual.containers import VerticalScroll
from textual.widgets import DataTable, Footer, Static

from api.cli.pending import of_namespace, workload_words
from api.cli.showing import age, name_of, printable
from api.cli.sources import Answers
from extender.answers.catalogue import ExplainQuestion, PendingQuestion, PreemptionsQuestion
from extender.answers.overviews import Preemptions
from extender.answers.parts import PodName
from extender.answers.pending import Pending
from extender.answers.phrases import its_scheduler, plural
from extender.answers.types import Explanation
from extender.values.reasons import InputError

SHOWN_PREEMPTIONS: Final = 5
SHOWN_FIXES: Final = 3


@final
class TopScreen(App[None]):
    """Asks again and again, and shows the newest answers: pods that wait, by reason and workload; preemptions; one
    pod's explanation.

    State: the first pod of each row, and the error that ended it.
    """

    CSS = """
    #waiting { height: 1fr; }
    #why { height: 1fr; border-top: solid $panel; }
    #preempted { height: auto; max-height: 7; border-top: solid $panel; }
    """
    BINDINGS: ClassVar[list[BindingType]] = [Binding("q", "quit", "Quit"), Binding("r", "ask", "Ask now")]
    ENABLE_COMMAND_PALETTE = False

    def __init__(self, answers: Answers, namespace: str | None, interval: float) -> None:
        super().__init__()
        self.failed: InputError | None = None
        self._answers = answers
        self._namespace = namespace
        self._interval = interval
        self._firsts: dict[str, PodName] = {}

    def compose(self) -> ComposeResult:
        yield Static(id="counts", markup=False)
        yield DataTable(id="waiting", cursor_type="row")
        with VerticalScroll(id="why"):
            yield Static(id="explanation", markup=False)
        yield Static(id="preempted", markup=False)
        yield Footer()

    async def on_mount(self) -> None:
        self._table.add_columns("pods", "workload", "priority", "age", "reason")
        await self.action_ask()
        self.set_interval(self._interval, self.action_ask)

    async def action_ask(self) -> None:
        """Asks for the newest answers. What keeps the source from answering ends the screen."""
        try:
            pending_pods = of_namespace(printable(await self._answers.ask(PendingQuestion())), self._namespace)
            recent = PreemptionsQuestion(limit=SHOWN_PREEMPTIONS)
            preempted = _preempted(printable(await self._answers.ask(recent))) if self._answers.remembers else ""
        except InputError as exc:
            self.failed = exc
            self.exit()
            return
        self._show(pending_pods)
        self.query_one("#preempted", Static).update(preempted)
        await self._explain()

    async def on_data_table_row_highlighted(self) -> None:
        """Explains the first pod of the row that is chosen now."""
        await self._explain()

    @property
    def _table(self) -> "DataTable[str]":
        return self.query_one("#waiting", DataTable)

    def _show(self, pending_pods: Pending) -> None:
        short = ", ".join(lack.resource for lack in pending_pods.lacking)
        self.query_one("#counts", Static).update(
            f"{plural(pending_pods.pods, 'pod')} waiting" + (f", short of {short}" if short else "")
        )
        chosen = self._table.cursor_row
        self._table.clear()
        self._firsts = {}
        for reason in pending_pods.reasons:
            for workload in reason.workloads:
                key = f"{workload.namespace}/{workload.workload}/{reason.reason}"
                cells = str(workload.pods), workload_words(workload), str(workload.priority), age(workload.since)
                self._table.add_row(*cells, reason.reason, key=key)
                if workload.first:
                    self._firsts[key] = workload.first[0]
        if self._table.row_count:
            self._table.move_cursor(row=min(chosen, self._table.row_count - 1))

    async def _explain(self) -> None:
        panel = self.query_one("#explanation", Static)
        if not self._table.row_count:
            panel.update("No pending pods.")
            return
        key = self._table.coordinate_to_cell_key(self._table.cursor_coordinate).row_key.value
        first = self._firsts.get(key or "")
        answer = (
            None
            if first is None
            else await self._answers.ask(ExplainQuestion(namespace=first.namespace, pod=first.name))
        )
        panel.update("" if answer is None else _explained(printable(answer)))


def _explained(answer: Explanation) -> str:
    nearest = [f"  {near.node}: {', '.join(near.reasons)}" for near in answer.nearest[:SHOWN_FIXES]]
    fixes = [f"  {fix.text} ({plural(fix.opens, 'node')})" for fix in answer.fixes[:SHOWN_FIXES]]
    lines = [f"{name_of(answer.pod)}  {answer.state}", answer.summary]
    lines += [f"its scheduler: {its}"] if (its := its_scheduler(answer)) else []
    lines += ["nearest:", *nearest] if nearest else []
    lines += ["it would fit if:", *fixes] if fixes else []
    return "\n".join(lines)


def _preempted(preemptions: Preemptions) -> str:
    lines = [
        f"{age(preemption.time)}  {name_of(victim.pod)} for {name_of(preemption.by)} on {preemption.node}"
        for preemption in preemptions.items
        for victim in preemption.victims
    ]
    return "\n".join(("recently preempted:", *lines[:SHOWN_PREEMPTIONS])) if lines else "No recent preemptions."
