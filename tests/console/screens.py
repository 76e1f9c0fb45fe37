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

    def go(self, control: Locator) -> None:
        """Clicks a link or button that leads to another page, and waits until that page has arrived completely.

        A click alone waits only for the page's beginning, and a page of records arrives in pieces.
        """
        with self.page.expect_navigation():
            control.click()

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
        self.go(self.page.get_by_role("navigation", name="Pages").get_by_role("link", name=label))

    def clusters(self) -> list[str]:
        """Returns the names of the clusters between which the user can choose."""
        return self.page.get_by_role("navigation", name="Clusters").get_by_role("link").all_inner_texts()

    def choose_cluster(self, name: str) -> None:
        self.go(self.page.get_by_role("navigation", name="Clusters").get_by_role("link", name=name))

    def alerts(self) -> list[str]:
        """Returns the sentences on what is wrong with the cluster."""
        return self.page.get_by_role("alert").all_inner_texts()


class Topics(Screen):
    """The list of topics."""

    path = "/topics"

    def search(self, text: str) -> None:
        self.page.get_by_role("searchbox").fill(text)
        self.go(self.page.get_by_role("button", name="Filter"))

    def open_topic(self, name: str) -> None:
        self.go(self.page.get_by_role("link", name=name))

    def names(self) -> list[str]:
        return self.page.locator("td.name a").all_inner_texts()


class Brokers(Screen):
    """The brokers and the quorum."""

    path = "/brokers"

    def row(self, broker: int) -> list[str]:
        """Returns the cells of a broker's row."""
        rows = self.rows().filter(has=self.page.locator("td:first-child", has_text=str(broker)))
        return rows.first.locator("td").all_inner_texts()

    def open_configuration(self, broker: int) -> None:
        self.go(self.page.locator(f'a[href*="/brokers/{broker}?"]'))


class Partitions(Screen):
    """The partitions of a topic."""

    def __init__(self, page: Page, place: str, topic: str) -> None:
        super().__init__(page, place)
        self.path = f"/topics/{topic}/partitions"

    def row(self, partition: int) -> dict[str, str]:
        """Returns the cells of a partition's row by the titles of their columns."""
        titles = self.page.locator("table").first.locator("th").all_inner_texts()
        cells = self.rows().nth(partition).locator("td").all_inner_texts()
        return dict(zip(titles, cells, strict=True))


class Configuration(Screen):
    """The configuration of a topic."""

    def __init__(self, page: Page, place: str, topic: str) -> None:
        super().__init__(page, place)
        self.path = f"/topics/{topic}/configuration"

    def row(self, key: str) -> list[str]:
        """Returns the cells of the row of a key."""
        rows = self.rows().filter(has=self.page.get_by_text(key, exact=True))
        return rows.first.locator("td").all_inner_texts()


class Groups(Screen):
    """The page that lists the groups."""

    path = "/groups"

    def row(self, group: str) -> list[str]:
        """Returns the cells of a group's row."""
        rows = self.rows().filter(has=self.page.get_by_role("link", name=group, exact=True))
        return rows.first.locator("td").all_inner_texts()

    def open_group(self, group: str) -> None:
        self.go(self.page.get_by_role("link", name=group, exact=True))


class Change(Screen):
    """The form of a change, its review, and its outcome."""

    def follow(self, label: str) -> None:
        """Follows the link with this text, from a page to the form."""
        self.go(self.page.locator("p.actions").get_by_role("link", name=label))

    def fill(self, **fields: str) -> None:
        """Fills fields of the form by the names of the fields."""
        for name, value in fields.items():
            field = self.page.locator(f"#field-{name}")
            if field.evaluate("element => element.tagName") == "SELECT":
                field.select_option(value)
            else:
                field.fill(value)

    def review(self) -> None:
        self.go(self.page.get_by_role("button", name="Review"))
        self.page.get_by_role("button", name="Apply").wait_for()

    def compared(self) -> list[list[str]]:
        """Returns the rows of the table that compares the present state with the new one."""
        return [row.locator("td").all_inner_texts() for row in self.rows().all()]

    def command(self) -> str:
        """Returns the commands that do the same."""
        return self.page.locator("pre").inner_text()

    def apply(self, confirm: str = "") -> str:
        """Applies the change, after typing `confirm` if it is given, and returns the sentence on the outcome."""
        if confirm:
            self.page.locator("#confirm").fill(confirm)
        self.go(self.page.get_by_role("button", name="Apply"))
        return self.page.get_by_role("status").inner_text()

    def proceed(self) -> None:
        """Follows the link to the page that shows what has changed."""
        self.go(self.page.get_by_role("link", name="Continue"))


class Messages(Screen):
    """The records of a topic."""

    def __init__(self, page: Page, place: str, topic: str) -> None:
        super().__init__(page, place)
        self.path = f"/topics/{topic}"

    def filter(self, field: str, operation: str, text: str) -> None:
        self.page.get_by_label("Filter").first.select_option(field)
        self.page.get_by_label("Operation").first.select_option(operation)
        self.page.get_by_label("Text").first.fill(text)
        self.go(self.page.get_by_role("button", name="Read"))

    def start(self, start: str) -> None:
        self.page.get_by_label("Start").select_option(start)

    def offsets(self) -> list[str]:
        """Returns the offsets of the shown records, from top to bottom."""
        return self.page.locator("table.records tbody td.n a").all_inner_texts()

    def outcome(self) -> str:
        """Returns the text of the last row, which says how far the search is."""
        return self.page.locator("tr.progress").last.inner_text()

    def open_first(self) -> None:
        self.go(self.page.locator("table.records tbody td.n a").first)


class Group(Screen):
    """One group."""

    path = "/group"

    def reasons(self) -> list[str]:
        """Returns the sentences on the group's lag."""
        return self.page.locator("p.notice").all_inner_texts()
