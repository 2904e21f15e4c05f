"""An explanation as a page: its record with packed numbers, and the HTML file that draws them."""

from typing import Any

from glassformer.explaining.record import ExplanationRecord
from glassformer.explaining.views.packing import (
    MOST_SECONDS,
    packed_attention,
    packed_image,
    packed_influence,
    packed_sound,
)
from glassformer.explaining.views.page import page
from glassformer.explaining.views.selection import select
from glassformer.explaining.views.wording import method_name, reading_of


def page_of(record: ExplanationRecord, *, layer: str | None = None, head: int | None = None) -> str:
    """One self-contained HTML file.

    Args:
        layer, head: The attention that is shown first, as `selection.select` takes them.
    """
    values = packed_record(record, layer=layer, head=head)
    return page(values, title=f"{record.answer[:60]} – {record.job}, explained")


def packed_record(
    record: ExplanationRecord, *, layer: str | None = None, head: int | None = None
) -> dict[str, Any]:
    """Plain values with packed numbers, which a page draws."""
    chosen = select(record.attention, layer=layer, head=head)
    attention = packed_attention(record.attention, record.sound, chosen)
    sound = None if record.sound is None else packed_sound(record.sound)
    notes = list(record.notes)
    if attention["strongest"] is not None:
        notes.append(
            f"Attention is shown for the {attention['strongest']} strongest weights of each "
            "token, in each layer and head."
        )
    if sound is not None and sound["cut"]:
        notes.append(f"The first {MOST_SECONDS:.0f} seconds of the recording are shown.")
    return {
        **record.texts(),
        "reading": reading_of(record.method, signed=record.signed)._asdict(),
        "method": method_name(record.method),
        "written": record.written,
        "influence": packed_influence(record.influence),
        "attention": attention,
        "sound": sound,
        "image": None if record.image is None else packed_image(record.image),
        "notes": notes,
    }
