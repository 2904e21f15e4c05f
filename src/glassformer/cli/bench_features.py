"""`glassformer bench features`: measure the extraction of features from sound."""

from glassformer.cli.bench import Device, Rounds, Threads, find_device, measure_pairs, show
from glassformer.cli.options import AsJson


def bench_features(
    rounds: Rounds = 20, threads: Threads = 1, device: Device = "cpu", json: AsJson = False
) -> None:
    """Time our log-mel features against those of kaldi-native-fbank.

    Lengths are seconds of sound. Kaldi uses one thread.

    Example: glassformer bench features --rounds 40
    """
    from glassformer.benchmarks.features import feature_pairs, real_time
    from glassformer.benchmarks.report import Report, busy, describe_machine

    place = find_device(device, threads)
    pairs = feature_pairs(place)
    machine = describe_machine(place, rounds) | {"dtype": "float32"}
    del machine["batch"]
    report = Report(machine=machine, notes=busy())
    plan = {"features": pairs}
    measure_pairs(report, plan, [], place, as_json=json, advice="use --device cpu")
    report.notes += real_time(report.sections["features"])
    show(report, json)
