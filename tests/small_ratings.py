"""Small tables of ratings: users of two tastes, items of two kinds, some rows for each split."""

import numpy as np

USERS, ITEMS = 23, 14


def ratings(seed=0, times=True, rated=True):
    """Rows of users who like items of their own parity; the last ones of each are held out."""
    rng, rows = np.random.default_rng(seed), []
    for user in range(USERS):
        order = rng.permutation(ITEMS)[:11].tolist()
        for place, item in enumerate(order):
            good = (user + item) % 2 == 0
            row = {"user": f"u{user}", "item": f"item {item}"}
            row |= {"rating": float(np.clip(4.5 if good else 1.5, 1, 5))} if rated else {}
            row |= {"time": 100 * user + place} if times else {}
            row["split"] = ("train", "valid", "test")[max(0, place - 8)]
            rows.append(row)
    return rows
