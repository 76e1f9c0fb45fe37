"""Page objects: what a user sees and does on each screen of the console, for tests in a browser."""

from __future__ import annotations

from urllib.parse import urlencode

from playwright.sync_api import Locator, Page


class Screen:
    """One page of a cluster's part of the console, opened in the browser."""

    path = "/"

    def __init__(self, page: Page, place: str) -> None:
        """`place` is the URL of the cluster's pages."""
        self.page = page
        self.place = place

    def open(self, **query: object) -> None:
        self.page.goto(self.place + self.path + (f"?{urlencode(query)}" if query else ""))

    @property
    def title(self) -> str:
        return self.page.locator("h1").inner_text()

    def rows(self) -> Locator:
        """Returns the rows of the first table."""
        return self.page.locator("table").first.locator("tbody tr")

    def figure(self, label: str) -> str:
        """Returns the value of a figure at the top of the page."""
        figure = self.page.locator(".figure", has=self.page.get_by_text(label, exact=True))
        return figure.locator("dd").inner_text()


class Overview(Screen):
    """The overview of a cluster."""

    def go_to(self, label: str) -> None:
        """Follows an entry of the menu."""
        self.page.get_by_role("navigation", name="Pages").get_by_role("link", name=label).click()


class Topics(Screen):
    """The list of topics."""

    path = "/topics"

    def search(self, text: str) -> None:
        self.page.get_by_role("searchbox").fill(text)
        self.page.get_by_role("button", name="Filter").click()

    def names(self) -> list[str]:
        return self.page.locator("td.name a").all_inner_texts()


class Messages(Screen):
    """The records of a topic."""

    def __init__(self, page: Page, place: str, topic: str) -> None:
        super().__init__(page, place)
        self.path = f"/topics/{topic}"

    def filter(self, field: str, operation: str, text: str) -> None:
        self.page.get_by_label("Filter").first.select_option(field)
        self.page.get_by_label("Operation").first.select_option(operation)
        self.page.get_by_label("Text").first.fill(text)
        self.page.get_by_role("button", name="Read").click()

    def start(self, start: str) -> None:
        self.page.get_by_label("Start").select_option(start)

    def offsets(self) -> list[str]:
        """Returns the offsets of the shown records, from top to bottom."""
        return self.page.locator("table.records tbody td.n a").all_inner_texts()

    def outcome(self) -> str:
        """Returns the text of the last row, which says how far the search is."""
        return self.page.locator("tr.progress").last.inner_text()

    def open_first(self) -> None:
        self.page.locator("table.records tbody td.n a").first.click()


class Group(Screen):
    """One group."""

    path = "/group"

    def reasons(self) -> list[str]:
        """Returns the sentences on the group's lag."""
        return self.page.locator("p.notice").all_inner_texts()
