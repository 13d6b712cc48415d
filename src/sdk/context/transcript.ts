/**
 * The history as a list of units: system messages first, then units in order. A unit is one message, or an
 * assistant message with the results of its calls. Appending takes constant time; left-out units are removed.
 * Independent of budgets.
 */
import { type Message, messageTokens } from "../base.ts";
import {
  answersOf,
  type CallName,
  callsOf,
  isHuman,
  missingResult,
  withBreakpoint,
} from "./request_message.ts";
import type { MessageVariants } from "./shorten.ts";

/** One message of the history and its form in the view. */
export class Entry {
  /** Index in the history; -1 for a result added by a repair. */
  readonly index: number;
  /** The whole message, valid in a request. */
  readonly message: Message;
  /** Kept characters of a truncated message; 0 for a stub; null when it is whole. */
  kept_chars: number | null = null;
  /** Whether a request may end here, so that a cache breakpoint is useful. Never becomes false again. */
  ends: boolean;
  /** The message in the view: whole, truncated or a stub. */
  visible: Message;
  #tokens: number | null = null;

  /** Creates the entry of a whole message. */
  constructor(message: Message, index: number, ends = false) {
    this.index = index;
    this.message = message;
    this.ends = ends;
    this.visible = message;
  }

  /** Tokens of `visible`; counted on first use, because the last answer of a run is never counted. */
  get tokens(): number {
    return this.#tokens ??= messageTokens(this.visible);
  }

  /** Sets another form. */
  show({ visible, tokens, kept_chars }: Form): void {
    this.visible = visible;
    this.#tokens = tokens;
    this.kept_chars = kept_chars;
  }
}

/** A call and its result. */
export interface Call extends CallName {
  result: Entry | null;
}

/** Messages that are kept or left out together. */
export interface MessageGroup {
  readonly kind: "human" | "group" | "other";
  readonly head: Entry;
  /** Calls of a group, in order; empty for other kinds. */
  readonly calls: readonly Call[];
}

/** Decisions of a compaction: units to leave out, and entries in another form. */
export interface CompactionDecisions {
  readonly removed: ReadonlySet<MessageGroup>;
  readonly changed: ReadonlyMap<Entry, Form>;
}

/** A form of an entry. */
export interface Form {
  readonly visible: Message;
  readonly tokens: number;
  readonly kept_chars: number | null;
}

/** Numbers of messages that are left out or shortened in the view. */
export interface TokenTotals {
  removed: number;
  truncated: number;
  stubbed: number;
}

/** Returns the entries of a unit in the order of the view, without duplicates. */
export function entriesOf(unit: MessageGroup): Entry[] {
  const entries = [unit.head];
  for (const { result } of unit.calls) if (result && !entries.includes(result)) entries.push(result);
  return entries;
}

/** Returns true when a call of the unit has no result. */
function isUnanswered(unit: MessageGroup): boolean {
  return unit.calls.some((call) => call.result === null);
}

/** The units of a history, and the view made of them. */
export class Transcript {
  /** Shortens and counts messages. */
  readonly forms: MessageVariants;
  /** System messages as stored. */
  readonly #stored_systems: Entry[] = [];
  /** Last prompt of the system prompt factory; replaces the stored system messages except those of hooks. */
  #prompt: Entry | null = null;
  /** Message between the system messages and the rest, such as a summary. */
  #lead: Entry | null = null;
  /** System messages at the start of every view that are not in the history. */
  readonly #fixed: readonly Entry[];
  #units: MessageGroup[] = [];
  /** Groups before the last unit with an unanswered call of this id, oldest first. */
  readonly #open = new Map<string, MessageGroup[]>();
  #view: Message[] = [];
  /** The view with breakpoints; null until it is requested. */
  #marked: Message[] | null = null;
  #tokens = 0;
  /** Entries of the view that are not in `#tokens` yet. */
  #uncounted: Entry[] = [];
  #stale = false;
  #totals: TokenTotals = { removed: 0, truncated: 0, stubbed: 0 };

  /**
   * Creates an empty transcript; `fixed` are system messages at the start of every view that are not in the
   * history.
   */
  constructor(forms: MessageVariants, fixed: readonly Message[] = []) {
    this.forms = forms;
    this.#fixed = fixed.map((message) => this.#entryOf(message, -1));
    for (const entry of this.#fixed) this.#append(entry);
  }

  get #systems(): readonly Entry[] {
    const stored = this.#stored_systems;
    const visible = this.#prompt
      ? [this.#prompt, ...stored.filter(({ message }) => message.metadata?.source === "hook")]
      : stored;
    return [...this.#fixed, ...visible];
  }

  /** The remaining units, in order. */
  get units(): readonly MessageGroup[] {
    return this.#units;
  }

  get system_tokens(): number {
    return this.#systems.reduce((sum, entry) => sum + entry.tokens, 0);
  }

  get system_count(): number {
    return this.#systems.length;
  }

  /** Numbers of messages that are left out or shortened in the view. */
  get totals(): Readonly<TokenTotals> {
    return this.#totals;
  }

  /** Tokens of the view. */
  get tokens(): number {
    this.#refresh();
    for (const entry of this.#uncounted) this.#tokens += entry.tokens;
    if (this.#uncounted.length > 0) this.#uncounted = [];
    return this.#tokens;
  }

  /** The view: frozen messages in an array that the transcript owns. It only grows until {@link apply}. */
  get view(): readonly Message[] {
    this.#refresh();
    return this.#view;
  }

  /** The view with cache breakpoints. */
  get marked(): readonly Message[] {
    this.#refresh();
    return this.#marked ??= this.#entries().map(markedOf);
  }

  /** Whether the view ends with running calls. */
  get running(): boolean {
    const last = this.#units.at(-1);
    return last !== undefined && isUnanswered(last);
  }

  /**
   * Adds the message at `index` of the history. A result without a call stays out of the view, because
   * providers refuse it.
   */
  add(message: Message, index: number): void {
    const entry = this.#entryOf(message, index);
    if (message.role === "system" || message.role === "developer") return this.#addSystem(entry);
    const answers = answersOf(message);
    if (answers.length > 0) return this.#addResult(entry, answers);
    this.#settle();
    const calls = callsOf(message).map(({ id, name }): Call => ({ id, name, result: null }));
    const unit: MessageGroup = {
      kind: calls.length > 0 ? "group" : isHuman(message) ? "human" : "other",
      head: entry,
      calls,
    };
    entry.ends = unit.kind === "human";
    this.#units.push(unit);
    this.#append(entry);
  }

  #entryOf(message: Message, index: number): Entry {
    return new Entry(message, index);
  }

  /** Sets the prompt that replaces the stored system messages except those of hooks; null restores them. */
  setPrompt(message: Message | null): void {
    if (message === null ? !this.#prompt : this.#prompt?.message.content === message.content) return;
    this.#prompt = message && new Entry(message, -1, true);
    this.#stale = true;
  }

  /** Sets the message between the system messages and the rest; it is not in the history. */
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
    let visible = false;
    const last = this.#units.at(-1);
    for (const id of answers) {
      // ids may repeat in a history: the result belongs to the latest unanswered call
      const unit = last && openCallOf(last, id) >= 0 ? last : this.#open.get(id)?.at(-1);
      if (!unit) continue;
      const position_of_call = openCallOf(unit, id);
      const inOrder = unit === last &&
        unit.calls.every((other, position) => (other.result !== null) === (position < position_of_call));
      unit.calls[position_of_call]!.result = entry; // the unit has an open call of this id
      if (unit !== last && openCallOf(unit, id) < 0) this.#close(unit, id);
      if (!isUnanswered(unit)) entriesOf(unit).at(-1)!.ends = true; // it has its head at least
      if (inOrder && !visible) this.#append(entry);
      else if (!inOrder) this.#stale = true;
      visible = true;
    }
  }

  /** Notes that no call of this id in a group is open any more. */
  #close(unit: MessageGroup, id: string): void {
    const rest = this.#open.get(id)?.filter((other) => other !== unit) ?? [];
    if (rest.length > 0) this.#open.set(id, rest);
    else this.#open.delete(id);
  }

  /** Adds the result of a repair to each unanswered call of the last unit, because a message follows it. */
  #settle(): void {
    const last = this.#units.at(-1);
    if (!last || !isUnanswered(last)) return;
    const firstOpen = last.calls.findIndex((call) => call.result === null);
    if (last.calls.some((call, position) => position > firstOpen && call.result !== null)) this.#stale = true;
    for (const call of last.calls) {
      if (call.result !== null) continue;
      this.#open.set(call.id, [...this.#open.get(call.id) ?? [], last]);
      const message = missingResult(call);
      call.result = this.#entryOf(message, -1);
      call.result.ends = call === last.calls.at(-1);
      this.#append(call.result);
    }
  }

  #append(entry: Entry): void {
    if (this.#stale) return;
    this.#view.push(entry.visible);
    this.#marked?.push(markedOf(entry));
    this.#uncounted.push(entry);
  }

  apply(decisions: CompactionDecisions): void {
    for (const [entry, form] of decisions.changed) entry.show(form);
    for (const unit of decisions.removed) {
      this.#totals.removed += entriesOf(unit).length;
      for (const { id } of unit.calls) this.#close(unit, id);
    }
    this.#units = this.#units.filter((unit) => !decisions.removed.has(unit));
    this.#totals = { removed: this.#totals.removed, truncated: 0, stubbed: 0 };
    for (const entry of this.#units.flatMap(entriesOf)) {
      if (entry.kept_chars !== null) this.#totals[entry.message.role === "user" ? "stubbed" : "truncated"]++;
    }
    this.#stale = true;
  }

  #refresh(): void {
    if (!this.#stale) return;
    const entries = this.#entries();
    this.#view = entries.map((entry) => entry.visible);
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

function markedOf({ visible, ends }: Entry): Message {
  return ends ? withBreakpoint(visible) : visible;
}

/** Returns the position of the first call with this id that has no stored result, or −1. */
function openCallOf(unit: MessageGroup, id: string): number {
  return unit.calls.findIndex((call) => call.id === id && (call.result === null || call.result.index < 0));
}
