# Copyright: (c) 2026, accel.cluster contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

import pytest
from ansible_collections.accel.cluster.plugins.module_utils._accel import links, record

NOW = "2026-11-30T01:02:03Z"
OLD = {"identity": "GPU-a", "speed_gts": 32.0, "width": 16, "at": "2026-11-29T01:02:03Z"}


def seen(uuid: str, speed: float | None, under_load: bool | None) -> dict:
    """Return an observation of one card."""
    link = {"speed_gts": speed, "width": 16, "under_load": under_load}
    return {"devices": [{"pci_address": "0000:18:00.0", "uuid": uuid, "serial": "1", "link": link}]}


def test_a_working_card_gives_a_reading() -> None:
    assert links.merge({}, seen("GPU-a", 32.0, True), NOW) == {
        "0000:18:00.0": {"identity": "GPU-a", "speed_gts": 32.0, "width": 16, "at": NOW}
    }


@pytest.mark.parametrize("under_load", [False, None])
def test_an_idle_card_keeps_the_last_reading(under_load: bool | None) -> None:
    assert links.merge({"0000:18:00.0": OLD}, seen("GPU-a", 2.5, under_load), NOW) == {"0000:18:00.0": OLD}


def test_no_speed_is_no_reading() -> None:
    assert links.merge({}, seen("GPU-a", None, True), NOW) == {}


def test_another_card_at_the_address_drops_the_reading() -> None:
    assert links.merge({"0000:18:00.0": OLD}, seen("GPU-b", 2.5, False), NOW) == {}


def test_a_card_that_does_not_answer_keeps_its_reading() -> None:
    assert links.merge({"0000:18:00.0": OLD}, {"devices": []}, NOW) == {"0000:18:00.0": OLD}


def test_kept_and_read_again(tmp_path) -> None:
    path = str(tmp_path / "links.json")
    assert links.load(path) == {}
    links.save(path, {"0000:18:00.0": OLD})
    assert links.load(path) == {"0000:18:00.0": OLD}


def test_a_bad_file_is_named(tmp_path) -> None:
    path = tmp_path / "links.json"
    path.write_text('{"schema": 1, "links": []}\n')
    with pytest.raises(record.RecordError, match=str(path)):
        links.load(str(path))
    # Each of these used to end the query of all cards with an exception.
    for reading in ('"x"', "null", "32.0", "[]"):
        path.write_text(f'{{"schema": 1,\n "links": {{"0000:18:00.0": {reading}}}}}\n')
        with pytest.raises(record.RecordError, match=r"line 2 column 28: the reading of .* must be an object"):
            links.load(str(path))
    path.write_text('{"schema": 1,')
    with pytest.raises(record.RecordError, match=str(path)):
        links.load(str(path))
