"""The web application: routes, sessions, logins, and errors as pages.

Pages are made on threads, because a client of a cluster blocks; at most MOST_READERS pages are made at a time.
"""

from __future__ import annotations

import hmac
import logging
from collections.abc import Awaitable, Callable, Mapping
from threading import Lock
from typing import Any
from urllib.parse import parse_qs

import anyio.to_thread
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import HTMLResponse, PlainTextResponse, RedirectResponse, Response
from starlette.routing import Mount, Route
from starlette.staticfiles import StaticFiles

from kafkapy.client.errors import AuthenticationError
from kafkapy.console import changing
from kafkapy.console.broker_facts import BrokerFacts
from kafkapy.console.cluster_view import ClusterView
from kafkapy.console.figures import segment
from kafkapy.console.history import History
from kafkapy.console.pages import PAGES
from kafkapy.console.problem import Problem, problem_of
from kafkapy.console.rendering import STATIC, render
from kafkapy.console.sampler import Sampler
from kafkapy.console.schema_decoder import SchemaDecoder
from kafkapy.console.settings import OAUTH_MECHANISM, Login, Settings
from kafkapy.console.visit import Page, Visit
from kafkapy.http.guard import Application, Guard
from kafkapy.http.sessions import Session, Sessions

log = logging.getLogger("kafkapy.console")

MOST_READERS = 12
SAMPLER_STOP_S = 2.0
LOGGED_NAME = 200
_NO_STORE = {"cache-control": "no-store"}
Endpoint = Callable[[Request], Awaitable[Response]]


class Console:
    """The console: its sessions, and a ClusterView for each of its clusters. `application` is the ASGI application."""

    def __init__(self, settings: Settings) -> None:
        self.settings = settings
        self.sessions = Sessions(on_end=self._end)
        self._schemas = {name: SchemaDecoder(url) for name, url in settings.registries.items()}
        self._facts = {name: BrokerFacts(settings.metrics.get(name, ())) for name in settings.clusters}
        self._views = {name: self._new_view(name, properties) for name, properties in settings.clusters.items()}
        self._views_lock = Lock()
        self._samplers = [
            self._new_sampler(each) for each in self._views.values() if settings.login is not Login.CLUSTER
        ]
        self._limiter: anyio.CapacityLimiter | None = None
        routes = [
            Route("/", self._first_page),
            Route("/login", self._login, methods=["GET", "POST"]),
            Route("/logout", self._logout, methods=["POST"]),
            Route("/healthy", lambda request: PlainTextResponse("ok\n")),
            Mount("/static", _Static(directory=STATIC)),
            *(Route(f"/c/{{cluster}}{path}", self._endpoint(page)) for path, page in PAGES),
            Route("/c/{cluster}/change/{change}", self._endpoint(changing.handle), methods=["GET", "POST"]),
        ]
        handlers = {404: self._not_found, 405: self._not_found, Problem: self._failed, 500: self._failed}
        starlette = Starlette(routes=routes, exception_handlers=handlers)
        self.application: Application = Guard(starlette, hosts=settings.hosts)

    def close(self) -> None:
        """Ends all sessions and the sampling of the clusters, and closes the connections to the clusters."""
        self.sessions.end_all()
        for sampler in self._samplers:
            sampler.stop()
        for view in self._views.values():
            view.close()
        for sampler in self._samplers:
            sampler.join(SAMPLER_STOP_S)

    def start_sampling(self) -> None:
        """Starts one thread for each cluster, which samples the cluster's figures for the history.

        Nothing is sampled if users log in with the cluster's credentials. The history could otherwise show a user
        topics that the user may not see.
        """
        for sampler in self._samplers:
            sampler.start()

    # Pages

    def _endpoint(self, make: Callable[[Visit], Page | Response]) -> Endpoint:
        async def endpoint(request: Request) -> Response:
            session = self._session(request)
            if session is None:
                return _redirect(f"/login?next={segment(_path_and_query(request))}")
            form = _single_values(await request.body()) if request.method == "POST" else None
            try:
                visit = self._visit(request, session)._replace(form=form)
            except Problem as problem:
                return self._problem_page(problem, session, None)
            return await self._run(lambda: self._respond(make, visit))

        return endpoint

    def _respond(self, make: Callable[[Visit], Page | Response], visit: Visit) -> Response:
        try:
            visit.cluster.check_reachable()
            made = make(visit)
            return made if isinstance(made, Response) else self._page(made, visit.session, visit)
        except Exception as error:
            problem = problem_of(error, visit.cluster.name)
            if problem is None:
                log.exception("The page %s failed", visit.url)
                problem = Problem(500, "This page failed by a defect of the console; its log has the details.")
            return self._problem_page(problem, visit.session, visit)

    def _page(self, page: Page, session: Session | None, visit: Visit | None) -> Response:
        shared = {
            "settings": self.settings,
            "session": session,
            "cluster": None,
            "clusters": list(self._views),
            "url": "/",
            "tab": "",
        }
        shown = {**shared, **(visit.shared() if visit is not None else {}), **page.values}
        # Content of records may have half of a surrogate pair, which UTF-8 cannot hold.
        return HTMLResponse(render(page.template, shown).encode("utf-8", "replace"), page.status, _NO_STORE)

    def _problem_page(self, problem: Problem, session: Session | None, visit: Visit | None) -> Response:
        return self._page(Page("problem", {"problem": problem}, problem.status), session, visit)

    async def _run(self, work: Callable[[], Response]) -> Response:
        if self._limiter is None:
            self._limiter = anyio.CapacityLimiter(MOST_READERS)
        return await anyio.to_thread.run_sync(work, limiter=self._limiter)

    def _visit(self, request: Request, session: Session) -> Visit:
        name = request.path_params["cluster"]
        lists: dict[str, list[str]] = {}
        for key, value in request.query_params.multi_items():
            lists.setdefault(key, []).append(value)
        return Visit(
            self._view(name, session),
            session,
            self.settings,
            request.path_params,
            {key: values[-1] for key, values in lists.items()},
            lists,
            _path_and_query(request),
            lambda other: self._view(other, session),
        )

    def _view(self, name: str, session: Session) -> ClusterView:
        """Returns the ClusterView of the cluster `name`; raises Problem if the console has no such cluster.

        If users log in with the cluster's credentials, the session has a view of its own with the user's credentials;
        otherwise all sessions share one view.
        """
        if name not in self._views:
            raise Problem(404, f"This console has no cluster {name[:100]!r}; it has {', '.join(self._views)}.")
        if self.settings.login is not Login.CLUSTER:
            return self._views[name]
        views: dict[str, ClusterView] = session.state["views"]
        with self._views_lock:
            if name not in views:
                views[name] = self._new_view(
                    name, self._with_credentials(name, session.user, session.state["password"])
                )
            return views[name]

    def _new_view(self, name: str, properties: Mapping[str, Any]) -> ClusterView:
        is_first = name == next(iter(self.settings.clusters))
        directory = self.settings.metadata_directory if is_first else None
        zookeeper = self.settings.zookeepers.get(name, "")
        schemas = self._schemas.get(name)
        rules = self.settings.mask_rules
        return ClusterView(name, properties, directory, schemas, zookeeper, rules, self._facts[name])

    def _new_sampler(self, view: ClusterView) -> Sampler:
        view.history = History()
        return Sampler(view, view.history, self.settings.history_topic)

    # Logins

    def _session(self, request: Request) -> Session | None:
        return self.sessions.find(request.cookies.get(self.settings.cookie, ""))

    async def _first_page(self, request: Request) -> Response:
        return _redirect(f"/c/{segment(next(iter(self._views)))}/")

    async def _login(self, request: Request) -> Response:
        if request.method == "GET" and not request.query_params.get("token"):
            return self._login_page("", request.query_params.get("next", "/"), 200)
        given = _single_values(await request.body()) if request.method == "POST" else dict(request.query_params)
        target = given.get("next", "/")
        if not self.sessions.try_login():
            return self._login_page("Too many logins have failed. Try again in a minute.", target, 429)
        try:
            session = await anyio.to_thread.run_sync(lambda: self._begin(given))
        except BaseException:  # the cluster could not check the credentials
            self.sessions.forgive()
            raise
        if session is None:
            log.warning("A login of %r failed", given.get("user", "")[:LOGGED_NAME])
            what = "The token is wrong." if self.settings.login is Login.TOKEN else "The name or the password is wrong."
            return self._login_page(what, target, 403)
        self.sessions.forgive()
        log.info("%s logged in", session.user)
        response = _redirect(target if target.startswith("/") and target[1:2] not in ("/", "\\") else "/")
        response.set_cookie(
            self.settings.cookie,
            session.key,
            path="/",
            httponly=True,
            samesite="strict",
            secure=self.settings.is_secure,
        )
        return response

    def _begin(self, given: Mapping[str, str]) -> Session | None:
        """Checks the fields `given` of a login form, and returns a new session; None if the credentials are wrong.

        If the console's kind of login is Login.TOKEN, checks the token, otherwise the name and the password.
        """
        settings = self.settings
        user, password = given.get("user", "")[:LOGGED_NAME], given.get("password", "")
        if settings.login is Login.TOKEN:
            is_right = hmac.compare_digest(given.get("token", "").encode(), settings.token.encode())
            return self.sessions.begin("token") if is_right else None
        if settings.login is Login.FILE:
            assert settings.users is not None
            return self.sessions.begin(user) if settings.users.accepts(user, password) else None
        return self._begin_with_cluster(user, password)

    def _begin_with_cluster(self, user: str, password: str) -> Session | None:
        name = next(iter(self._views))
        view = self._new_view(name, self._with_credentials(name, user, password))
        try:
            view.describe()
        except AuthenticationError:
            view.close()
            return None
        except Exception:
            view.close()
            raise
        return self.sessions.begin(user, {"password": password, "views": {name: view}})

    def _with_credentials(self, name: str, user: str, password: str) -> dict[str, Any]:
        """Returns the client properties for the cluster `name`, in which SASL uses the user's credentials.

        For OAuth, `user` is a client id and `password` a client secret, which the client exchanges for a token.
        """
        if self.settings.mechanism == OAUTH_MECHANISM:
            return {
                **self.settings.clusters[name],
                "sasl.mechanism": OAUTH_MECHANISM,
                "sasl.jaas.config": "org.apache.kafka.common.security.oauthbearer.OAuthBearerLoginModule required;",
                "sasl.oauthbearer.client.credentials.client.id": user,
                "sasl.oauthbearer.client.credentials.client.secret": password,
            }
        module = "plain.PlainLoginModule" if self.settings.mechanism == "PLAIN" else "scram.ScramLoginModule"
        quoted = (text.replace("\\", "\\\\").replace('"', '\\"') for text in (user, password))
        jaas = 'org.apache.kafka.common.security.{} required username="{}" password="{}";'.format(module, *quoted)
        return {
            **self.settings.clusters[name],
            "sasl.mechanism": self.settings.mechanism,
            "sasl.jaas.config": jaas,
        }

    def _login_page(self, problem: str, target: str, status: int) -> Response:
        values = {"problem": problem, "next": target, "login": self.settings.login.value}
        return self._page(Page("login", values, status), None, None)

    async def _logout(self, request: Request) -> Response:
        session = self._session(request)
        if session is not None and session.accepts_form(_single_values(await request.body()).get("form_token", "")):
            self.sessions.end(session.key)
        return _redirect("/login")

    def _end(self, session: Session) -> None:
        for view in (session.state or {}).get("views", {}).values():
            view.close()

    # Errors

    async def _not_found(self, request: Request, error: Exception) -> Response:
        status = getattr(error, "status_code", 404)
        text = f"The console has no page {request.url.path[:200]!r}."
        return self._problem_page(Problem(status, text), self._session(request), None)

    async def _failed(self, request: Request, error: Exception) -> Response:
        problem = problem_of(error) or Problem(500, "The console failed by a defect; its log has the details.")
        return self._problem_page(problem, None, None)


class _Static(StaticFiles):
    """The static files. Their URLs change with their content, so that browsers may cache the responses for a year."""

    def file_response(self, *arguments: Any, **settings: Any) -> Response:
        response = super().file_response(*arguments, **settings)
        response.headers["cache-control"] = "public, max-age=31536000, immutable"
        return response


def _redirect(url: str) -> RedirectResponse:
    return RedirectResponse(url, 303, _NO_STORE)


def _path_and_query(request: Request) -> str:
    return request.url.path + (f"?{request.url.query}" if request.url.query else "")


def _single_values(body: bytes) -> dict[str, str]:
    """Returns the last value of each field of a form. Raises Problem if the body is not a form."""
    try:
        found = parse_qs(body.decode(), keep_blank_values=True, max_num_fields=1000)
    except ValueError as error:
        raise Problem(400, f"This is not a form: {error}") from None
    return {name: values[-1] for name, values in found.items()}
