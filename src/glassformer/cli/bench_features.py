"""`glassformer bench features`: measure the extraction of features from sound."""

from typing import Annotated

import typer

from glassformer.cli.bench import (
    DEVICES,
    check_counts,
    check_device,
    find_device,
    pair_jobs,
    show,
    shown_if_cut_short,
    work_through,
)


def bench_features(
    rounds: Annotated[int, typer.Option(help="Number of rounds per pair.")] = 20,
    threads: Annotated[int, typer.Option(help="CPU threads; Kaldi uses one.")] = 1,
    device: Annotated[str, typer.Option(help=f"One of {', '.join(DEVICES)}.")] = "cpu",
    json: Annotated[bool, typer.Option("--json", help="Print JSON.")] = False,
) -> None:
    """Time our log-mel features against those of kaldi-native-fbank.

    Lengths are seconds of sound.

    Example: glassformer bench features --rounds 40
    """
    check_counts(rounds, threads, default=20)
    check_device(device)
    from glassformer.benchmarks.features import feature_pairs, real_time
    from glassformer.benchmarks.report import Report, busy, describe_machine

    place = find_device(device, threads)
    pairs = feature_pairs(place)
    machine = describe_machine(place, rounds) | {"dtype": "float32"}
    del machine["batch"]
    report = Report(machine=machine, notes=busy(), sections={"features": []})
    with shown_if_cut_short(report, json):
        work_through(pair_jobs(report, {"features": pairs}, place, rounds), "use --device cpu")
    report.notes += real_time(report.sections["features"])
    show(report, json)
