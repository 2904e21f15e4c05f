"""The style of a report: what every page shares, and its tables of scores and charts."""

from glassformer.style import STYLE as SHARED

STYLE = (
    f"{SHARED}\n"
    + """
.verdict p { font-size: 1.15rem; margin: 0.4rem 0; }
.scores td, .scores th { border-bottom: 0; padding-top: 0.15rem; padding-bottom: 0.15rem;
                         white-space: nowrap; }
.scores tbody tr:first-child > * { border-top: 1px solid var(--rule); padding-top: 0.7rem; }
.scores tbody tr:last-child > * { padding-bottom: 0.7rem; }
.scores tbody th, .scores .system { white-space: normal; }
.scores .system { min-width: 7rem; }
.scores .picture { width: 40%; min-width: 7rem; vertical-align: middle; }
.scores .ours { font-weight: 600; }
.heat { width: auto; font-size: 0.85rem; }
.heat td, .heat th { border: 0; padding: 0.35rem 0.5rem; }
.heat td { min-width: 2.4rem; text-align: right; border: 1px solid var(--paper);
           background: rgba(var(--heat), var(--share)); print-color-adjust: exact;
           -webkit-print-color-adjust: exact; }
.heat td small { display: block; font-size: 0.65em; opacity: 0.8; white-space: nowrap; }
.heat td.deep { color: var(--deep); }
.heat td.none { color: var(--quiet); }
.heat tbody th { text-align: right; white-space: nowrap; font-weight: 400; }
.heat thead th { vertical-align: bottom; color: var(--ink); font-weight: 400; }
.heat thead th span { writing-mode: vertical-rl; transform: rotate(180deg); }
.key { display: inline-block; margin-right: 1.5rem; white-space: nowrap; }
.key i { display: inline-block; width: 1.1rem; height: 0.2rem; margin-right: 0.5rem;
         border-radius: 0.1rem; vertical-align: middle; background: var(--hue);
         print-color-adjust: exact; -webkit-print-color-adjust: exact; }
svg { display: block; width: 100%; height: auto; overflow: visible; }
svg.whiskers { height: 20px; }
.square { max-width: 26rem; }
.tick { font-size: 11px; fill: var(--quiet); font-variant-numeric: tabular-nums; }
.middle { text-anchor: middle; }
.end { text-anchor: end; }
.grid, .track { stroke: var(--rule); stroke-width: 1; }
.axis, .guide { stroke: var(--quiet); stroke-width: 1; }
.guide { stroke-dasharray: 3 4; }
.line { fill: none; stroke: var(--hue); stroke-width: 1.8; stroke-linejoin: round; }
.whisker { stroke: var(--hue); stroke-width: 1.6; }
.gap { stroke: var(--hue); stroke-width: 2; opacity: 0.55; }
.dot { fill: var(--hue); }
.spot { fill: var(--hue); fill-opacity: 0.75; }
@media (max-width: 36rem) {
  .tick { font-size: 17px; }
  .square .tick { font-size: 13px; }
}
""".strip()
)
