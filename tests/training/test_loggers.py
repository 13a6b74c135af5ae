import errno
import json
import os

import pytest

from pufferlib.training.loggers import JsonlLogger
from pufferlib.training.loggers.files import LineFile


def test_jsonl_logger_writes_one_line_per_update(tmp_path):
    logger = JsonlLogger(tmp_path / "metrics.jsonl")
    logger.log({"update": 1, "losses/policy": 0.5})
    assert json.loads((tmp_path / "metrics.jsonl").read_text()) == {"update": 1, "losses/policy": 0.5}
    logger.log({"update": 2, "losses/explained_variance": float("nan"), "x": float("-inf")})
    logger.close()
    logger.close()
    lines = (tmp_path / "metrics.jsonl").read_text().splitlines()
    assert json.loads(lines[1]) == {"update": 2, "losses/explained_variance": None, "x": None}


def test_jsonl_logger_appends_to_existing_file(tmp_path):
    for update in (1, 2):
        logger = JsonlLogger(tmp_path / "metrics.jsonl")
        logger.log({"update": update})
        logger.close()
    assert len((tmp_path / "metrics.jsonl").read_text().splitlines()) == 2


def test_jsonl_logger_removes_incomplete_line(tmp_path):
    path = tmp_path / "metrics.jsonl"
    path.write_text('{"update": 1}\n{"upda')
    logger = JsonlLogger(path)
    logger.log({"update": 2})
    logger.close()
    assert [json.loads(line) for line in path.read_text().splitlines()] == [{"update": 1}, {"update": 2}]


def test_jsonl_logger_that_cannot_write_warns_in_close(tmp_path, monkeypatch):
    def fails(self):
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    monkeypatch.setattr(LineFile, "flush", fails)
    logger = JsonlLogger(tmp_path / "metrics.jsonl")
    with pytest.warns(UserWarning, match="metrics could not be written"):
        logger.log({"update": 1})
    with pytest.warns(
        UserWarning, match=r"metrics of the last updates could not be written \(No space .*\) and are lost"
    ):
        logger.close()
