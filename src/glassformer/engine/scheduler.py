"""Which requests are worked on, and how many tokens of each are read in the next step.

A request is admitted once its pages are certain: those that its prompt and its longest answer could
need. What cannot fit waits its turn. Finished sequences stay in the pool until their pages are
needed: a new prompt that begins alike shares them.

Owners share the rows: next is the request of the one with the fewest, and where there is no room
for it, the newest of the one with the most gives way, as long as that one keeps as many rows. It
goes on later from where it was; a search begins again.
"""

from collections import Counter, OrderedDict
from collections.abc import Callable, Hashable, Iterator

from glassformer.engine.generation import Branch
from glassformer.engine.paged_decoder import PagedDecoder
from glassformer.engine.prefixes import Prefixes
from glassformer.errors import GlassformerError
from glassformer.wording import counted

ALONE = 8  # times as much of prompts is read while nobody else waits for a token,
MOST = 32_768  # up to so many tokens
Reading = tuple[Branch, int]  # a request, and how many of its tokens are read


class Scheduler:
    """The requests that wait, those that are worked on, and the pages of both.

    Attributes:
        waiting: By owner and number.
        pressed: Whether a request would give way once all of its tokens are known.

    Args:
        rows: The most requests to work on at a time.
        chunk: The most tokens of prompts to read in a step while others wait for a token, so that
            a long prompt does not hold them up; a multiple of the page size.
        exact: Whether prompts share pages only where both are read in the same chunks.
    """

    def __init__(self, decoder: PagedDecoder, *, rows: int, chunk: int, exact: bool) -> None:
        self.decoder, self.pool, self.exact = decoder, decoder.pool, exact
        self.rows, self.chunk = rows, chunk
        self.waiting: dict[Hashable, OrderedDict[int, Branch]] = {}
        self.pressed = False
        self.running: dict[int, Branch] = {}
        self.reading: dict[int, Branch] = {}  # those whose prompts are not read to the end
        self.finished: OrderedDict[int, None] = OrderedDict()  # sequences that are still there
        self.failed: dict[int, Exception] = {}  # requests whose sources could not be encoded
        page = chunk if exact else self.pool.page_size
        self.held, self.coming = Prefixes(page), Prefixes(page)  # what was read, and what will be

    @property
    def due_tokens(self) -> int:
        """About how many the next step reads: the newest ones, those of prompts, and sources."""
        coming = sum(one.unread for one in self.reading.values())
        for queue in self.waiting.values():
            for one in queue.values():
                if coming >= self._allowance:
                    break
                coming += one.unread + one.source_length
        return len(self.running) + min(coming, self._allowance)

    def add(self, branch: Branch, *, first: bool = False) -> None:
        """Have a request wait, after those of its owner or before them."""
        queue = self.waiting.setdefault(branch.owner, OrderedDict())
        queue[branch.number] = branch
        if first:
            queue.move_to_end(branch.number, last=False)

    def plan(self, put_back: Callable[[Branch], None]) -> list[Reading]:
        """Admit what fits; returns whose prompts are read next, and how much of each.

        Args:
            put_back: Has a running request wait again.
        """
        held, self.pressed = self._rows_held(), False
        encoded = 0  # vectors of sources, which take time like tokens of prompts
        while self.waiting and encoded < self.chunk:
            branch = next(iter(self.waiting[min(self.waiting, key=held.__getitem__)].values()))
            if self._shares_what_comes(branch):
                break
            while not self._reserve(branch):
                other = self._giving_way(held, held[branch.owner] + branch.rows)
                if other is None:
                    return list(self._chunks(held))
                held[other.owner] -= other.rows
                put_back(other)
            self._drop_waiting(branch.owner, branch.number)
            if not self._encode(branch):
                continue
            self.running[branch.number] = self.reading[branch.number] = branch
            self.running |= {one.number: one for one in branch.others}
            held[branch.owner] += branch.rows
            encoded += branch.source_length
        return list(self._chunks(held))

    def began(self, branch: Branch) -> None:
        """A prompt was read to its end; others may share it."""
        del self.reading[branch.number]
        for one in branch.others:
            self.pool.store(one.sequence, *self.pool.load(branch.sequence))
            one.read = branch.read
        if self.decoder.sources is None:  # with a source, equal tokens have other keys
            self.coming.remove(branch.sequence)
            self.held.add(branch.sequence, branch.prompt)

    def finish(self, branch: Branch) -> None:
        """Keep what others might share, and release the rest."""
        del self.running[branch.number]
        if self.decoder.sources is not None:
            self._release(branch)
            return
        self.pool.trim(branch.sequence)
        self.held.add(branch.sequence, branch.tokens[: branch.read])
        self.finished[branch.sequence] = None

    def put_back(self, branch: Branch) -> None:
        """Have a running request without others wait again, as the first of its owner."""
        if self.reading.pop(branch.number, None) is None:
            self.finish(branch)
        else:
            del self.running[branch.number]
            self._release(branch)
        branch.sequence, branch.source, branch.read = -1, -1, 0
        self.add(branch, first=True)

    def cancel(self, number: int) -> None:
        """Forget a request, and free its pages at once."""
        branch = self.running.get(number)
        if branch is not None:
            self.reading.pop(number, None)
            for one in (branch, *branch.others):
                del self.running[one.number]
                self._release(one)
        for owner in list(self.waiting):
            self._drop_waiting(owner, number)

    def drop_finished(self) -> None:
        """Free the pages of finished sequences."""
        while self.finished:
            self._drop_oldest()

    def refuse_too_large(self, branch: Branch) -> None:
        """Refuse a request that could not even be admitted if it were the only one."""
        sources, vectors = self.decoder.sources, branch.source_length
        if sources is not None and sources.pages_for(vectors) > sources.pages:
            raise GlassformerError(
                f"the source could have {vectors:,} vectors, more than the engine has memory for; "
                f"shorten it, or give the engine more memory_pages"
            )
        count = branch.rows
        pages = count * self.pool.pages_for(branch.most_tokens)
        if count > self.rows or pages > self.pool.pages:
            raise GlassformerError(
                f"the request could need {count * branch.most_tokens} tokens of memory in "
                f"{counted(count, 'row')}, more than the engine has; lower decode.max_length or "
                f"decode.beam.width, shorten the prompt, or give it more pages"
            )

    @property
    def _allowance(self) -> int:
        """The most tokens of prompts that the next step reads."""
        if len(self.reading) < len(self.running):  # others wait for a token
            return self.chunk
        return max(self.chunk, min(ALONE * self.chunk, MOST))

    def _rows_held(self) -> Counter[Hashable]:
        """How many rows each owner has."""
        held = Counter[Hashable]()
        for one in self.running.values():
            held[one.owner] += 1
        return held

    def _giving_way(self, held: Counter[Hashable], rows: int) -> Branch | None:
        """The newest request of the owner with the most rows, who keeps at least so many."""
        if self.exact or not self.running:  # exactly the same again it could not be
            return None
        [(owner, most)] = held.most_common(1)
        newest = reversed(self.running.values())
        branch = next(one for one in newest if one.owner == owner and one.number > 0)
        if most - branch.rows < rows:
            return None
        if len(branch.tokens) < len(branch.prompt) + branch.chosen:
            self.pressed = True
            return None
        return branch

    def _drop_waiting(self, owner: Hashable, number: int) -> None:
        self.waiting[owner].pop(number, None)
        if not self.waiting[owner]:
            del self.waiting[owner]

    def _shares_what_comes(self, branch: Branch) -> bool:
        """Whether it can share more pages once another prompt is read."""
        prompt = branch.tokens[:-1]
        return self.coming.longest(prompt)[1] > self.held.longest(prompt)[1]

    def _reserve(self, branch: Branch) -> bool:
        """Open the sequences of a request, if there are rows and all pages that they may need."""
        if len(self.running) + branch.rows > self.rows:
            return False
        sources = self.decoder.sources
        if sources is not None and sources.pages_for(branch.source_length) > sources.free_pages:
            return False
        prompt = branch.tokens[:-1]  # the last token is read for its scores
        holder, shared = self.held.longest(prompt)
        if holder is not None and holder in self.finished:
            self.finished.move_to_end(holder)
        sequence = self.pool.open() if holder is None else self.pool.fork(holder, shared)
        needed = branch.rows * self.pool.pages_for(branch.most_tokens)
        if not self._make_room(needed - self.pool.pages_for(shared)):
            self.pool.close(sequence)
            return False
        branch.sequence, branch.read = sequence, shared
        for one in branch.others:
            one.sequence = self.pool.open()
        for one in (branch, *branch.others):
            self.pool.reserve(one.sequence, branch.most_tokens)
        if sources is None:
            self.coming.add(branch.sequence, branch.prompt)
        return True

    def _encode(self, branch: Branch) -> bool:
        """Encode the source of a request, if it has one; whether that succeeds."""
        sources, origin = self.decoder.sources, branch.origin
        if sources is None or origin is None:
            return True
        try:
            branch.source = self.decoder.keep(origin.encode())
        except Exception as error:  # of this request alone: the others go on
            for one in (branch, *branch.others):
                self.pool.close(one.sequence)
            self.failed[branch.number] = error
            return False
        for one in branch.others:  # they share its pages
            one.source = sources.fork(branch.source)
        return True

    def _make_room(self, needed: int) -> bool:
        """Drop finished sequences, oldest first, until so many pages are free."""
        while needed > self.pool.free_pages:
            if not self.finished:
                return False
            self._drop_oldest()
        return True

    def _drop_oldest(self) -> None:
        oldest, _ = self.finished.popitem(last=False)
        self.held.remove(oldest)
        self.pool.close(oldest)

    def _chunks(self, held: Counter[Hashable]) -> Iterator[Reading]:
        """As much of the prompts as a step may read, those of owners with few rows first."""
        left = self._allowance
        for branch in sorted(self.reading.values(), key=lambda one: held[one.owner]):
            count = min(left, branch.unread)
            if self.exact:  # always the same chunks, whoever else reads
                count = min(self.chunk - branch.read % self.chunk, branch.unread)
            if not left or count > left:
                return
            left -= count
            yield branch, count

    def _release(self, branch: Branch) -> None:
        self.coming.remove(branch.sequence)
        self.held.remove(branch.sequence)
        self.pool.close(branch.sequence)
        if self.decoder.sources is not None:
            self.decoder.sources.close(branch.source)
