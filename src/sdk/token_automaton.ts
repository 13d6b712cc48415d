/**
 * The automaton behind `estimateTokens`: classes of character, states that remember the run a character stands in, one table
 * lookup a character. It knows weights and characters; it knows nothing of messages.
 */
import { type CharClass, CLASS_NUMBERS, CLASSES, classTable } from "./token_classes.ts";
import {
  type Before,
  type HanClass,
  NOISE_FLIPS,
  WEIGHTS,
  type Weights,
  type WordStart,
} from "./token_weights.ts";

/** Marks a cell of `next` that {@link Automaton.learn} has not filled yet. */
export const UNKNOWN = 0xffff;

/** Number of the class `same`, which no character has by itself. */
export const SAME = CLASSES.indexOf("same");

/** Where in a run the last character stood. */
interface State {
  readonly last: CharClass;
  /** Position in the run, from 1, up to where costs stop changing. */
  readonly position: number;
  readonly word: WordStart;
  /** Changes of case or kind in this run of letters and digits. */
  readonly flips: number;
  /** Whether the last mark followed another mark. */
  readonly second_mark: boolean;
  readonly repeated: number;
}

type Step = readonly [cost: number, next: State];

const MARKS: ReadonlySet<CharClass> = new Set<CharClass>([
  "quote",
  "open",
  "close",
  "stop",
  "underscore",
  "dash",
  "slash",
  "operator",
]);
const LETTERS: ReadonlySet<CharClass> = new Set<CharClass>(["lower", "upper", "accented"]);
const HAN: ReadonlySet<CharClass> = new Set<CharClass>(["han_common", "han_usual", "han_single", "han"]);
const LONGEST = 9;
const WORD_STARTS: readonly WordStart[] = ["spaced", "marked", "inner"];

/** More than there are states (some 320); a change of the rules that makes more fails loudly. */
const MOST_STATES = 420;

let usual: Automaton | undefined;

/** Returns the automaton of {@link WEIGHTS}; its tables are filled as texts need them. */
export function automaton(): Automaton {
  return usual ??= new Automaton(WEIGHTS);
}

/** See the top of the file. A cell of its tables is a row, which stands for a state, plus a class. */
export class Automaton {
  /** Class of every UTF-16 code unit. */
  readonly classes: Uint8Array = classTable();
  /** 1 for every class whose repetition is the class `same`. */
  readonly repeats: Uint8Array = Uint8Array.from(
    CLASSES,
    (name) => MARKS.has(name) || name === "symbol" || name === "typographic" ? 1 : 0,
  );
  /** Row of the next state, or {@link UNKNOWN}. */
  readonly next: Uint16Array = new Uint16Array(MOST_STATES * CLASSES.length).fill(UNKNOWN);
  /** Hundredths of a token. */
  readonly cost: Uint16Array = new Uint16Array(MOST_STATES * CLASSES.length);
  readonly #weights: Weights;
  readonly #states: State[] = [];
  readonly #rows = new Map<number, number>();

  /** Makes the tables, empty. */
  constructor(weights: Weights) {
    this.#weights = weights;
    this.#rowOf(run("newline")); // row 0: a text starts like a line
  }

  /** Fills one cell of the tables and returns its next row. Working all of them out at once takes 15 ms of a cold start. */
  learn(cell: number): number {
    const from = this.#states[Math.floor(cell / CLASSES.length)];
    const to = CLASSES[cell % CLASSES.length];
    if (!from || !to) throw new RangeError(`Cannot follow a character: no such cell: received ${cell}`);
    const [price, state] = step(this.#weights, from, to);
    this.cost[cell] = price;
    return this.next[cell] = this.#rowOf(state);
  }

  #rowOf(state: State): number {
    const key = keyOf(state);
    let row = this.#rows.get(key);
    if (row === undefined) {
      if (this.#states.length === MOST_STATES) {
        throw new RangeError(`Cannot add a state: the tables are full: received ${MOST_STATES}`);
      }
      row = (this.#states.push(state) - 1) * CLASSES.length;
      this.#rows.set(key, row);
    }
    return row;
  }
}

function keyOf(state: State): number {
  let key = CLASS_NUMBERS[state.last];
  key = key * (LONGEST + 1) + state.position;
  key = key * WORD_STARTS.length + WORD_STARTS.indexOf(state.word);
  key = key * (NOISE_FLIPS + 1) + state.flips;
  key = key * 4 + state.repeated;
  return key * 2 + (state.second_mark ? 1 : 0);
}

function run(last: CharClass, more: Partial<State> = {}): State {
  return {
    last,
    position: more.position ?? 1,
    word: more.word ?? "inner",
    flips: more.flips ?? 0,
    second_mark: more.second_mark ?? false,
    repeated: more.repeated ?? 0,
  };
}

function step(weights: Weights, state: State, to: CharClass): Step {
  const { ENTER, ENTER_SCRIPT, MOVES, REPEAT, CONTINUE } = weights;
  const before = beforeOf(state);
  if (to === "lower" || to === "upper" || to === "digit") return alphanumeric(weights, state, before, to);
  if (to === "accented") return accented(weights, state, before);
  if (to === "same") {
    const repeated = Math.min(REPEAT.length, state.repeated + 1);
    return [REPEAT[repeated - 1] ?? 0, run(state.last, { second_mark: true, repeated })];
  }
  if (MARKS.has(to)) return mark(weights, state, before, to);
  if (HAN.has(to) && HAN.has(state.last)) {
    return [weights.HAN[state.last as HanClass][to as HanClass], run(to)]; // both are in HAN
  }
  const cyrillic = cyrillicWord(weights, state, before, to);
  if (cyrillic) return cyrillic;
  if (to === state.last) {
    const costs = CONTINUE[to] ?? [MOVES.low_surrogate];
    const position = Math.min(costs.length + 1, state.position + 1);
    return [at(costs, position), run(to, { position })];
  }
  if (to === "low_surrogate") return [MOVES.low_surrogate, run(to)];
  const position = to === "space" && before === "line" ? 2 : 1; // indentation: the next space costs as in a run
  return [
    ENTER[before][to] ?? ENTER_SCRIPT[scriptBefore(state, before, to)][to] ?? MOVES.unforeseen,
    run(to, { position }),
  ];
}

/** A word of Cyrillic letters, Russian or other, is one run; null when this is none. */
function cyrillicWord(
  { CONTINUE, MOVES }: Weights,
  state: State,
  before: Before,
  to: CharClass,
): Step | null {
  if (to !== "cyrillic" && to !== "cyrillic_other") return null;
  if (state.last !== "cyrillic" && state.last !== "cyrillic_other") {
    // What a word before a space or a mark cost is in its own letters: one that begins after a space is cheaper.
    return to === "cyrillic" ? null : [
      before === "space" ? MOVES.cyrillic_other_first : MOVES.cyrillic_other_marked,
      run(to, { word: before === "space" ? "spaced" : "marked" }),
    ];
  }
  const costs = CONTINUE.cyrillic ?? [];
  const position = Math.min(costs.length + 1, state.position + 1);
  const cost = to === "cyrillic" ? at(costs, position) : MOVES.cyrillic_other_in_word;
  return [cost, run(to, { position })];
}

function alphanumeric(
  weights: Weights,
  state: State,
  before: Before,
  to: "lower" | "upper" | "digit",
): Step {
  const { NOISE, ENTER, DIGITS, MOVES, CONTINUE, WORD } = weights;
  const joined = before === "digit" || state.last === "lower" || state.last === "upper";
  const flips = flipsOf(state, before, joined, to);
  if (flips >= NOISE_FLIPS) {
    const from = joined && state.flips >= NOISE_FLIPS ? state.last as keyof typeof NOISE : "any"; // joined: one of its keys
    return [NOISE[from][to], run(to, { flips })];
  }
  if (to === "digit") {
    if (state.last !== "digit") return [ENTER[before].digit ?? MOVES.unforeseen, run("digit", { flips })];
    return [DIGITS[state.position - 1] ?? 0, run("digit", { position: state.position % 3 + 1, flips })];
  }
  if (before !== "letter") {
    const word = before === "space" ? "spaced" : before === "digit" ? "inner" : "marked";
    return [ENTER[before][to] ?? MOVES.unforeseen, run(to, { word, flips })];
  }
  if (to === "upper") {
    if (state.last !== "upper") return [MOVES.hump, run("upper", { flips })];
    const costs = CONTINUE.upper ?? [];
    const position = Math.min(costs.length + 1, state.position + 1);
    return [at(costs, position), run("upper", { position, word: state.word, flips })];
  }
  if (state.last === "upper" && state.position > 1) {
    return [MOVES.after_capitals, run("lower", { position: 2, flips })];
  }
  const position = Math.min(LONGEST, state.position + 1);
  return [at(WORD[state.word], position), run("lower", { position, word: state.word, flips })];
}

function flipsOf(state: State, before: Before, joined: boolean, to: CharClass): number {
  if (!joined) return before === "mark" ? state.flips : 0;
  const flipped = state.last === "lower" && to === "upper" || (state.last === "digit") !== (to === "digit");
  return Math.min(NOISE_FLIPS, state.flips + (flipped ? 1 : 0));
}

function accented({ MOVES }: Weights, state: State, before: Before): Step {
  if (before !== "letter") {
    return [MOVES.accented_first, run("accented", { word: before === "space" ? "spaced" : "marked" })];
  }
  const position = Math.min(LONGEST, state.position + 1);
  return [MOVES.accented_in_word, run("accented", { position, word: state.word })];
}

function mark({ ENTER, MOVES }: Weights, state: State, before: Before, to: CharClass): Step {
  const noise = state.flips >= NOISE_FLIPS && (before === "letter" || before === "digit");
  // Base64 has `/` and `+` inside, UUIDs have `-`: what was noise before them is noise after them.
  const flips = to === "dash" || noise && (to === "slash" || to === "operator") ? state.flips : 0;
  const second_mark = before === "mark" || before === "marks";
  return [
    noise ? MOVES.mark_after_noise : ENTER[before][to] ?? MOVES.unforeseen,
    run(to, { flips, second_mark }),
  ];
}

function beforeOf(state: State): Before {
  if (state.last === "space") return state.position === 1 ? "space" : "line";
  if (state.last === "newline" || state.last === "tab") return "line";
  if (LETTERS.has(state.last)) return "letter";
  if (state.last === "digit") return "digit";
  if (MARKS.has(state.last)) return state.second_mark ? "marks" : "mark";
  return "script";
}

function scriptBefore(state: State, before: Before, to: CharClass): keyof Weights["ENTER_SCRIPT"] {
  if (before === "space") return "space";
  if (HAN.has(state.last)) return "han";
  if (state.last === "kana" || state.last === "katakana") return "kana";
  if (to === "high_surrogate") return state.last === "low_surrogate" ? "script" : "other";
  return before === "script" ? "script" : "other";
}

function at(costs: readonly number[], position: number): number {
  return costs[Math.min(costs.length, position - 1) - 1] ?? 0;
}
