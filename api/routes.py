"""From method and path to an endpoint. Each path has at most one place that varies."""

from collections.abc import Iterable

from quipu.api.calls import Endpoint
from quipu.api.codes import Code
from quipu.api.problems import Problem, problem

# Where a path may vary, the leading slash counted: /v1/entries/{id}, /problems/{code},
# /v1/admin/operations/{id}.
PLACES = (3, 2, 4)


class Routes:
    def __init__(self, endpoints: Iterable[Endpoint], is_private: bool = False) -> None:
        self.endpoints = tuple(endpoints)
        self.is_private = is_private  # whoever gets here may do everything
        self._exact: dict[str, dict[str, Endpoint]] = {}
        self._varying: dict[tuple[str, ...], dict[str, Endpoint]] = {}
        for endpoint in self.endpoints:
            parts = endpoint.path.split("/")
            if "{" in endpoint.path:
                key = tuple(_pattern(part) for part in parts)
                self._varying.setdefault(key, {})[endpoint.method] = endpoint
            else:
                self._exact.setdefault(endpoint.path, {})[endpoint.method] = endpoint

    def _at(self, parts: list[str], place: int) -> tuple[dict[str, Endpoint] | None, str]:
        """What varies there may have a verb behind it, /v1/sequences/{name}:lock, or something else
        that varies, /v1/sequences/{name}/{number}."""
        varying, _, verb = parts[place].rpartition(":")
        for argument, pattern in ((varying, f"{{}}:{verb}"), (parts[place], "{}")):
            key = (*parts[:place], pattern, *parts[place + 1 :])
            methods = self._varying.get(key)
            if methods is not None:
                return methods, argument
        if len(parts) == place + 2:
            methods = self._varying.get((*parts[:place], "{}", "{}"))
            if methods is not None:
                return methods, "/".join(parts[place:])
        return None, ""

    def find(self, method: str, path: str) -> tuple[Endpoint, str]:
        """The endpoint, and what stands at the place that varies."""
        methods, argument = self._exact.get(path), ""
        if methods is None:
            parts = path.split("/")
            for place in PLACES:
                if len(parts) > place and parts[place]:
                    methods, argument = self._at(parts, place)
                    if methods is not None:
                        break
        if methods is None:
            problem(Code.NOT_FOUND, f"{path[:200]} leads nowhere")
        endpoint = methods.get("GET" if method == "HEAD" else method)
        if endpoint is None:
            allowed = sorted({*methods, *(["HEAD"] if "GET" in methods else [])})
            raise Problem(
                Code.METHOD_NOT_ALLOWED,
                f"{path[:200]} takes {', '.join(allowed)}",
                allow=", ".join(allowed),
            )
        return endpoint, argument


def _pattern(part: str) -> str:
    """{name}:lock -> {}:lock"""
    return "{}" + part.partition("}")[2] if part.startswith("{") else part
