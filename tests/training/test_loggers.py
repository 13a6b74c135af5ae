import json

from pufferlib.training.loggers import JsonlLogger


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
