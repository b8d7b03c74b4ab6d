"""Every version that some objects have, as watches of the API server tell them."""

from __future__ import annotations

import threading
import time
from dataclasses import dataclass

import requests

from .api import Api, Object
from .cluster import Cluster
from .process import Failed


@dataclass
class Version:
    at: float  # the wall clock's time when it was told
    kind: str  # of the event: ADDED, MODIFIED, DELETED
    object: Object


class Recorder:
    """Records from now on, until it is stopped. Asks the API server itself, whatever stands in front."""

    def __init__(self, cluster: Cluster, *resources: str) -> None:
        self._versions: dict[str, list[Version]] = {resource: [] for resource in resources}
        self._stopped = False
        control_plane = cluster.control_plane
        for number, resource in enumerate(resources):
            api = control_plane.client(f"recorder-{number}", "recorder", "system:masters")
            threading.Thread(target=self._record, args=(api, resource), daemon=True).start()

    def stop(self) -> None:
        self._stopped = True

    def versions(self, resource: str, name: str) -> list[Version]:
        """Oldest first."""
        return [
            version
            for version in list(self._versions[resource])
            if version.object["metadata"]["name"] == name
        ]

    def _record(self, api: Api, resource: str) -> None:
        last = ""
        while not self._stopped:
            try:
                last = last or api.get(resource)["metadata"]["resourceVersion"]
                last = self._follow(api, resource, last)
            except (Failed, requests.RequestException):
                # Its definition is not there (yet). What was before it is gone as well.
                last = ""
                time.sleep(0.1)

    def _follow(self, api: Api, resource: str, last: str) -> str:
        """One watch, to its end. Returns where to go on."""
        # Shorter than what Api waits for the next line.
        options = {"resourceVersion": last, "allowWatchBookmarks": "1", "timeoutSeconds": "20"}
        for event in api.watch(resource, **options):
            if event["type"] == "ERROR":
                raise Failed(f"watch {resource}: {event['object']}")
            last = event["object"]["metadata"]["resourceVersion"]
            if event["type"] != "BOOKMARK":
                self._versions[resource].append(Version(time.time(), event["type"], event["object"]))
        return last
