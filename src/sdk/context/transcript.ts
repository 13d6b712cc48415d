/**
 * The history folded into what a view is made of: system messages first, then units in order, where a unit is one message or
 * an assistant message with the results of its calls. Adding to the end costs the same whatever the length; what a
 * compaction left out is no longer here. Knows nothing of budgets.
 */
import type { Message } from "../mod.ts";
import { withBreakpoint } from "./cache_breakpoints.ts";
import type { MessageVariants } from "./message_variants.ts";
import { answersOf, type CallName, callsOf, isHuman, missingResult } from "./request_message.ts";

/** One message of the history and how the view shows it. */
export class Entry {
  /** Place in the history; -1 for a result that a repair made up. */
  readonly index: number;
  /** As a request may carry it, whole. */
  readonly message: Message;
  /** Characters that were kept when it was truncated or (0) stubbed; null when it is whole. */
  kept_chars: number | null = null;
  /** Whether a request may end here, so that a cache breakpoint after it is of use. Never taken back. */
  ends: boolean;
  readonly #forms: MessageVariants;
  #shown: Message;
  #tokens: number | null = null;

  /** Creates the entry of a message that is shown whole. */
  constructor(message: Message, index: number, forms: MessageVariants, ends = false) {
    this.index = index;
    this.message = message;
    this.ends = ends;
    this.#forms = forms;
    this.#shown = message;
  }

  /** As the view has it: whole, truncated or a stub. */
  get shown(): Message {
    return this.#shown;
  }

  /** Tokens of `shown`; counted when somebody asks, because nobody does after the last answer of a run. */
  get tokens(): number {
    return this.#tokens ??= this.#forms.count(this.#shown);
  }

  /** Shows it in another form. */
  show({ shown, tokens, kept_chars }: Form): void {
    this.#shown = shown;
    this.#tokens = tokens;
    this.kept_chars = kept_chars;
  }
}

/** A call and what answers it. */
export interface Call extends CallName {
  result: Entry | null;
}

/** Messages that stay or go together. */
export interface MessageGroup {
  readonly kind: "human" | "group" | "other";
  readonly head: Entry;
  /** Of a group, in order; else empty. */
  readonly calls: readonly Call[];
}

/** What a compaction decided: units to leave out, and entries to show in another form. */
export interface CompactionDecisions {
  readonly removed: ReadonlySet<MessageGroup>;
  readonly changed: ReadonlyMap<Entry, Form>;
}

/** A form to show an entry in. */
export interface Form {
  readonly shown: Message;
  readonly tokens: number;
  readonly kept_chars: number | null;
}

/** What the view does not show whole. */
export interface TokenTotals {
  /** Messages left out. */
  removed: number;
  truncated: number;
  stubbed: number;
}

/** Returns the entries of a unit in the order of the view, each once. */
export function entriesOf(unit: MessageGroup): Entry[] {
  const entries = [unit.head];
  for (const { result } of unit.calls) if (result && !entries.includes(result)) entries.push(result);
  return entries;
}

/** Returns true when a call of the unit has no result. */
export function isUnanswered(unit: MessageGroup): boolean {
  return unit.calls.some((call) => call.result === null);
}

/** See the top of the file. */
export class Transcript {
  /** The forms and the meter that messages are shown and counted with. */
  readonly forms: MessageVariants;
  /** System messages as stored. */
  readonly #stored_systems: Entry[] = [];
  /** What the system prompt factory told last; takes the place of the stored ones but those of hooks. */
  #prompt: Entry | null = null;
  /** What stands between the system messages and the rest, such as a summary of what was left out. */
  #lead: Entry | null = null;
  /** System messages that stand first in every view and in no history. */
  readonly #fixed: readonly Entry[];
  #units: MessageGroup[] = [];
  /** Groups with a call of this id that has no stored result, oldest first. */
  readonly #open = new Map<string, MessageGroup[]>();
  #view: Message[] = [];
  /** The view with breakpoints; null until somebody wants it. */
  #marked: Message[] | null = null;
  #tokens = 0;
  /** What is in the view and not in `#tokens` yet. */
  #uncounted: Entry[] = [];
  #stale = false;
  #tally: TokenTotals = { removed: 0, truncated: 0, stubbed: 0 };

  /** Creates an empty one; `fixed` are system messages that stand first in every view and are in no history. */
  constructor(forms: MessageVariants, fixed: readonly Message[] = []) {
    this.forms = forms;
    this.#fixed = fixed.map((message) => this.#entryOf(message, -1));
    for (const entry of this.#fixed) this.#append(entry);
  }

  get #systems(): readonly Entry[] {
    const stored = this.#stored_systems;
    const shown = this.#prompt
      ? [this.#prompt, ...stored.filter(({ message }) => message.metadata?.source === "hook")]
      : stored;
    return [...this.#fixed, ...shown];
  }

  /** Units in order, without those that were left out. */
  get units(): readonly MessageGroup[] {
    return this.#units;
  }

  /** Tokens of the system messages. */
  get system_tokens(): number {
    return this.#systems.reduce((sum, entry) => sum + entry.tokens, 0);
  }

  /** Number of system messages. */
  get system_count(): number {
    return this.#systems.length;
  }

  /** What the view does not show whole. */
  get tally(): Readonly<TokenTotals> {
    return this.#tally;
  }

  /** Tokens of the view. */
  get tokens(): number {
    this.#refresh();
    for (const entry of this.#uncounted) this.#tokens += entry.tokens;
    if (this.#uncounted.length > 0) this.#uncounted = [];
    return this.#tokens;
  }

  /** The view: frozen messages in an array that is the transcript's own. It only grows until {@link apply}. */
  get view(): readonly Message[] {
    this.#refresh();
    return this.#view;
  }

  /** The view with cache breakpoints; the same otherwise. */
  get marked(): readonly Message[] {
    this.#refresh();
    return this.#marked ??= this.#entries().map(markedOf);
  }

  /** Whether the view ends with calls that are still running. */
  get running(): boolean {
    const last = this.#units.at(-1);
    return last !== undefined && isUnanswered(last);
  }

  /** Adds the message at `index` of the history. A result that answers no call is not shown: no provider would take it. */
  add(message: Message, index: number): void {
    const entry = this.#entryOf(message, index);
    if (message.role === "system" || message.role === "developer") return this.#addSystem(entry);
    const answers = answersOf(message);
    if (answers.length > 0) return this.#addResult(entry, answers);
    this.#settle();
    const calls = callsOf(message).map((call): Call => ({ ...call, result: null }));
    const unit: MessageGroup = {
      kind: calls.length > 0 ? "group" : isHuman(message) ? "human" : "other",
      head: entry,
      calls,
    };
    entry.ends = unit.kind === "human";
    for (const { id } of calls) this.#open.set(id, [...this.#open.get(id) ?? [], unit]);
    this.#units.push(unit);
    this.#append(entry);
  }

  #entryOf(message: Message, index: number): Entry {
    return new Entry(message, index, this.forms);
  }

  /** Sets what stands for the stored system messages, those of hooks excepted; null = nothing does. */
  setPrompt(message: Message | null): void {
    if (message === null ? !this.#prompt : this.#prompt?.message.content === message.content) return;
    this.#prompt = message && new Entry(message, -1, this.forms, true);
    this.#stale = true;
  }

  /** Sets a message that stands between the system messages and the rest; it is in no history. */
  setLead(message: Message | null): void {
    this.#lead = message && this.#entryOf(message, -1);
    this.#stale = true;
  }

  #addSystem(entry: Entry): void {
    entry.ends = this.#stored_systems.push(entry) === 1;
    if (this.#units.length === 0 && !this.#prompt && !this.#lead) this.#append(entry);
    else this.#stale = true;
  }

  #addResult(entry: Entry, answers: readonly string[]): void {
    let shown = false;
    for (const id of answers) {
      // Ids may repeat over a history: the latest call that waits is meant.
      const unit = this.#open.get(id)?.at(-1);
      const place = unit?.calls.findIndex((call) => call.id === id && !isStored(call.result)) ?? -1;
      const call = unit?.calls[place];
      if (!unit || !call) continue;
      const inOrder = unit === this.#units.at(-1) &&
        unit.calls.every((other, position) => (other.result !== null) === (position < place));
      call.result = entry;
      this.#close(unit, id);
      if (!isUnanswered(unit)) endOf(unit).ends = true;
      if (inOrder && !shown) this.#append(entry);
      else if (!inOrder) this.#stale = true;
      shown = true;
    }
  }

  #close(unit: MessageGroup, id: string): void {
    if (unit.calls.some((call) => call.id === id && !isStored(call.result))) return;
    const rest = this.#open.get(id)?.filter((other) => other !== unit) ?? [];
    if (rest.length > 0) this.#open.set(id, rest);
    else this.#open.delete(id);
  }

  /** Something follows the last unit: calls of it that are still open get the result of a repair. */
  #settle(): void {
    const last = this.#units.at(-1);
    if (!last || !isUnanswered(last)) return;
    const firstOpen = last.calls.findIndex((call) => call.result === null);
    if (last.calls.some((call, position) => position > firstOpen && call.result !== null)) this.#stale = true;
    for (const call of last.calls) {
      if (call.result !== null) continue;
      const message = missingResult(call);
      call.result = this.#entryOf(message, -1);
      call.result.ends = call === last.calls.at(-1);
      this.#append(call.result);
    }
  }

  #append(entry: Entry): void {
    if (this.#stale) return;
    this.#view.push(entry.shown);
    this.#marked?.push(markedOf(entry));
    this.#uncounted.push(entry);
  }

  /** Carries out what a compaction decided. */
  apply(decisions: CompactionDecisions): void {
    for (const [entry, form] of decisions.changed) entry.show(form);
    for (const unit of decisions.removed) {
      this.#tally.removed += entriesOf(unit).length;
      for (const { id } of unit.calls) {
        const rest = this.#open.get(id)?.filter((other) => other !== unit) ?? [];
        if (rest.length > 0) this.#open.set(id, rest);
        else this.#open.delete(id);
      }
    }
    this.#units = this.#units.filter((unit) => !decisions.removed.has(unit));
    this.#tally = { removed: this.#tally.removed, truncated: 0, stubbed: 0 };
    for (const entry of this.#units.flatMap(entriesOf)) {
      if (entry.kept_chars !== null) this.#tally[entry.message.role === "user" ? "stubbed" : "truncated"]++;
    }
    this.#stale = true;
  }

  #refresh(): void {
    if (!this.#stale) return;
    const entries = this.#entries();
    this.#view = entries.map((entry) => entry.shown);
    this.#marked = this.#marked && entries.map(markedOf);
    this.#tokens = entries.reduce((sum, entry) => sum + entry.tokens, 0);
    this.#uncounted = [];
    this.#stale = false;
  }

  #entries(): Entry[] {
    const lead = this.#lead ? [this.#lead] : [];
    return [...this.#systems, ...lead, ...this.#units.flatMap(entriesOf)];
  }
}

function markedOf({ shown, ends }: Entry): Message {
  return ends ? withBreakpoint(shown) : shown;
}

function endOf(unit: MessageGroup): Entry {
  return entriesOf(unit).at(-1) ?? unit.head;
}

function isStored(result: Entry | null): boolean {
  return result !== null && result.index >= 0;
}
