"""The style of every page: system fonts, ample spacing, light and dark, screen and print.

The colours are safe for colour-blind readers: Okabe and Ito, 2008.
"""

STYLE = """
:root {
  color-scheme: light dark;
  --paper: #fdfdfb; --ink: #1e2023; --quiet: #666b70; --rule: #e3e3de; --wash: #f4f4f0;
  --heat: 0, 114, 178; --deep: #fff;
  --hue-0: #0072b2; --hue-1: #d55e00; --hue-2: #009e73;
  --hue-3: #b8578f; --hue-4: #b27700; --hue-5: #3b8fc4;
}
@media (prefers-color-scheme: dark) {
  :root {
    --paper: #16181a; --ink: #e4e4e0; --quiet: #989da3; --rule: #2d3034; --wash: #1e2124;
    --heat: 86, 180, 233; --deep: #0d1012;
    --hue-0: #56b4e9; --hue-1: #f0894a; --hue-2: #35c49b;
    --hue-3: #dd8fbb; --hue-4: #e6b04d; --hue-5: #8fc9ee;
  }
}
* { box-sizing: border-box; }
body {
  margin: 0 auto; padding: 4rem 1.5rem 6rem; max-width: 54rem;
  background: var(--paper); color: var(--ink);
  font: 1rem/1.6 system-ui, -apple-system, "Segoe UI", Roboto, "Noto Sans", sans-serif;
  -webkit-text-size-adjust: 100%;
}
h1 { margin: 0 0 2.5rem; font-size: 2rem; font-weight: 600; line-height: 1.25;
     letter-spacing: -0.015em; overflow-wrap: anywhere; }
h2 { margin: 0 0 1rem; font-size: 1.1rem; font-weight: 600; }
section { margin: 0 0 3.5rem; }
p, li { max-width: 42rem; }
.quiet, figcaption { color: var(--quiet); font-size: 0.9rem; }
dl { display: grid; grid-template-columns: max-content 1fr; gap: 0.3rem 1.75rem; margin: 0; }
dt { color: var(--quiet); }
dd { margin: 0; overflow-wrap: anywhere; font-variant-numeric: tabular-nums; }
.wide { overflow-x: auto; }
table { border-collapse: collapse; width: 100%; font-size: 0.93rem;
        font-variant-numeric: tabular-nums; }
th, td { padding: 0.4rem 1.25rem 0.4rem 0; text-align: left; vertical-align: top;
         border-bottom: 1px solid var(--rule); }
th:last-child, td:last-child { padding-right: 0; }
thead th { color: var(--quiet); font-weight: 500; white-space: nowrap; }
tbody th { font-weight: 500; }
.number { text-align: right; white-space: nowrap; }
.text { overflow-wrap: anywhere; min-width: 6.5rem; }
audio { display: block; width: 14rem; height: 2.25rem; }
figure { margin: 0 0 2rem; }
figcaption { margin: 0 0 0.5rem; }
.hue-0 { --hue: var(--hue-0); } .hue-1 { --hue: var(--hue-1); } .hue-2 { --hue: var(--hue-2); }
.hue-3 { --hue: var(--hue-3); } .hue-4 { --hue: var(--hue-4); } .hue-5 { --hue: var(--hue-5); }
@media (max-width: 36rem) {
  body { padding: 2rem 1rem 3rem; }
  h1 { font-size: 1.5rem; margin-bottom: 1.75rem; }
  dl { grid-template-columns: 1fr; gap: 0; }
  dd { margin-bottom: 0.6rem; }
}
@media print {
  :root { --paper: #fff; --ink: #000; --quiet: #444; --rule: #ccc; --heat: 0, 114, 178;
          --deep: #fff; --hue-0: #0072b2; --hue-1: #d55e00; --hue-2: #009e73;
          --hue-3: #b8578f; --hue-4: #b27700; --hue-5: #3b8fc4; }
  body { padding: 0; max-width: none; font-size: 10pt; }
  section { margin-bottom: 2rem; }
  figure, tr { break-inside: avoid; }
  h2 { break-after: avoid; }
  .wide { overflow: visible; }
  audio { display: none; }
}
""".strip()
