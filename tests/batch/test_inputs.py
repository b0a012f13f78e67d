"""How files are shared out into tasks."""

import pytest

from refold.batch._inputs import InputFile, shards_of


def files(count, size):
    return [InputFile(f"{number}.json", size, "") for number in range(count)]


def sizes(shards):
    return {len(shard) for shard in shards[:-1]} | {len(shards[-1])}


@pytest.mark.parametrize(
    ("count", "size", "expected"), [(10_000, 40_000, {50}), (10_000, 10_000, {200}), (10_000, 100, {500})]
)
def test_many_files_become_tasks_of_about_two_seconds_by_their_bytes(count, size, expected):
    shards = shards_of(files(count, size), 2)
    assert [file for shard in shards for file in shard] == files(count, size)
    assert sizes(shards) == expected


def test_large_files_become_tasks_of_fewer_so_that_little_is_lost_with_a_worker():
    assert sizes(shards_of(files(1_000, 1_000_000), 2)) == {2}
    assert sizes(shards_of(files(1_000, 5_000_000), 2)) == {1}


def test_more_policies_become_smaller_tasks():
    assert sizes(shards_of(files(10_000, 40_000), 2, work=8)) == {7, 4}


def test_a_few_files_are_shared_out_among_all_workers():
    assert len(shards_of(files(20, 1_000), 2)) >= 7
    assert len(shards_of(files(3, 1_000), 8)) == 3


def test_a_million_files_do_not_become_more_tasks_than_a_folder_can_hold():
    assert len(shards_of(files(200_000, 5_000_000), 100)) <= 20_001


def test_no_file_becomes_no_task():
    assert shards_of([], 2) == []
