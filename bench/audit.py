#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""audit.py REPRISE [ROWS…]: the whole audit of a sample log, as JSON lines, against finding its duplicates alone.

The log is one and a half epochs of shuffled ids, or of hashes, with a resume in the middle that has a dead branch.
The others only count the ids that occur twice: DuckDB from a table that it holds in memory already, and from the
same file; Polars, where it is installed, from a column in memory; `sort | uniq -d` on the numbers of the smallest size. Times are of processor seconds, user and system,
as others may be at work on the machine, and of the clock."""
import os
import subprocess
import sys
import time

import numpy

STEP = 1024


def write_log(path, rows, hashes):
    """Returns the ids in their order on the surviving line."""
    size = rows * 2 // 3
    ids = numpy.concatenate([numpy.random.default_rng(k).permutation(size) for k in range(2)])[:rows]
    if hashes:
        ids = (ids.astype(numpy.uint64) + 1) * numpy.uint64(0x9E3779B97F4A7C15)
    cut, dead = rows // STEP // 2, 100
    with open(path, "w", encoding="ascii") as out:
        out.write('{"reprise":"ledger/1","dataset":{"name":"bench","size":%d}}\n{"attempt":1,"from_step":0}\n' % size)

        def steps(first, last):
            for step in range(first, last):
                part = ids[step * STEP : (step + 1) * STEP]
                epoch = step * STEP // size
                if hashes:
                    text = ",".join('"%016x"' % key for key in part.tolist())
                else:
                    text = ",".join(map(str, part.tolist()))
                out.write('{"step":%d,"dp":0,"epoch":%d,"%s":[%s]}\n' % (step + 1, epoch, "keys" if hashes else "ids", text))

        steps(0, cut + dead)
        out.write('{"attempt":2,"from_step":%d}\n' % cut)
        steps(cut, rows // STEP)
    return ids


# A process that is started from a large one counts its size as its own peak; so start from a small one.
LAUNCH = """
import resource, subprocess, sys
done = subprocess.run(sys.argv[1:], stdout=subprocess.PIPE, text=True)
used = resource.getrusage(resource.RUSAGE_CHILDREN)
print(used.ru_utime + used.ru_stime, used.ru_maxrss * 1024, done.stdout)
"""


def run(*command):
    """(clock, processor, peak bytes, output) of a command."""
    start = time.time()
    done = subprocess.run([sys.executable, "-S", "-c", LAUNCH, *command], stdout=subprocess.PIPE, text=True, check=True)
    cpu, peak, output = done.stdout.split(" ", 2)
    return time.time() - start, float(cpu), int(peak), output


def in_duckdb(ids):
    """The duplicates of a table in DuckDB's memory, the table made before the clock starts."""
    import duckdb

    db = duckdb.connect()
    db.execute("set threads = 2")
    db.register("given", {"id": ids})
    db.execute("create table t as select * from given")
    start, cpu = time.time(), time.process_time()
    db.execute("select count(*) from (select id from t group by id having count(*) > 1)").fetchone()
    return time.time() - start, time.process_time() - cpu


def in_polars(ids):
    """The same in Polars; None where it is not installed."""
    os.environ["POLARS_MAX_THREADS"] = "2"
    try:
        import polars
    except ImportError:
        return None
    column = polars.DataFrame({"id": ids})
    start, cpu = time.time(), time.process_time()
    column.group_by("id").len().filter(polars.col("len") > 1).height
    return time.time() - start, time.process_time() - cpu


def from_file_in_duckdb(path, field):
    import duckdb

    db = duckdb.connect()
    db.execute("set threads = 2")
    start, cpu = time.time(), time.process_time()
    db.execute(
        f"select count(*) from (select id from (select unnest({field}) id from read_json('{path}', "
        f"format='newline_delimited', columns={{{field}: 'VARCHAR[]'}}, maximum_object_size=1000000000)) "
        "group by id having count(*) > 1)"
    ).fetchone()
    return time.time() - start, time.process_time() - cpu


def main():
    reprise, sizes = sys.argv[1], [int(float(n)) for n in sys.argv[2:]] or [10**6, 10**7]
    path = os.path.join(os.path.dirname(reprise), "bench", "log.jsonl")
    for rows in sizes:
        for hashes in (False, True):
            ids = write_log(path, rows, hashes)
            clock, cpu, peak, output = run(reprise, "audit", "-q", path)
            if not output.startswith("EXACT"):
                sys.exit("the audit says " + output)
            what = "hashes" if hashes else "ids"
            print(f"audit {rows:.0e} {what:6} {cpu:7.2f} s of processors, {clock:6.2f} s by the clock, "
                  f"{os.path.getsize(path) / cpu / 1e6:5.0f} MB/s, peak memory {peak / 1e6:.0f} MB")
            for name, taken in (
                ("DuckDB's table", in_duckdb(ids)),
                ("DuckDB, the file", from_file_in_duckdb(path, "keys" if hashes else "ids")),
                ("Polars' column", in_polars(ids)),
            ):
                if taken is None:
                    continue
                their_clock, their_cpu = taken
                print(f"      duplicates, {name:17} {their_cpu:7.2f} s: {their_cpu / cpu:5.1f} times, "
                      f"{their_clock:6.2f} s by the clock: {their_clock / clock:5.1f} times")
            if rows == min(sizes):
                numbers = path + ".numbers"
                with open(numbers, "w", encoding="ascii") as out:
                    for part in numpy.array_split(ids, len(ids) // 10**6 + 1):
                        out.write("\n".join(map(str, part.tolist())) + "\n")
                their_clock, their_cpu, _, _ = run("sh", "-c", f"LC_ALL=C sort '{numbers}' | uniq -d | wc -l")
                print(f"      duplicates, sort | uniq -d    {their_cpu:7.2f} s: {their_cpu / cpu:5.1f} times")
                os.remove(numbers)
    os.remove(path)


main()
