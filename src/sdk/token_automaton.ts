/**
 * The automaton behind `estimateTokens`: 28 classes of character, some 280 states that remember the run a character stands
 * in, one table lookup a character. It knows weights and characters; it knows nothing of messages.
 */
import {
  type Before,
  type CharClass,
  CLASSES,
  CONTINUE,
  DIGITS,
  ENTER,
  ENTER_SCRIPT,
  MOVES,
  NOISE,
  NOISE_FLIPS,
  REPEAT,
  WORD,
  type WordStart,
} from "./token_weights.ts";

/** Marks a cell of `next` that {@link learn} has not filled yet. */
export const UNKNOWN = 0xffff;

/** Number of the class `same`, which no character has by itself. */
export const SAME = CLASSES.indexOf("same");

/** The tables: a cell is a row, which stands for a state, plus a class. */
export interface Automaton {
  /** Class of every UTF-16 code unit. */
  readonly classes: Uint8Array;
  /** 1 for every class whose repetition is the class `same`. */
  readonly repeats: Uint8Array;
  /** Row of the next state, or {@link UNKNOWN}. */
  readonly next: Uint16Array;
  /** Hundredths of a token. */
  readonly cost: Uint8Array;
}

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
const LONGEST = 9;
const WORD_STARTS: readonly WordStart[] = ["spaced", "marked", "inner"];
const CLASS_NUMBERS = Object.fromEntries(CLASSES.map((name, number) => [name, number])) as Record<
  CharClass, // fromEntries forgets the keys
  number
>;

/** More than there are states (306); {@link learn} fails loudly should a change of the rules make more. */
const MOST_STATES = 400;
const states: State[] = [];
const rows = new Map<number, number>();
const next = new Uint16Array(MOST_STATES * CLASSES.length).fill(UNKNOWN);
const cost = new Uint8Array(MOST_STATES * CLASSES.length);
let tables: Automaton | undefined;

/** Returns the automaton; its tables are filled as texts need them, see {@link learn}. */
export function automaton(): Automaton {
  if (tables) return tables;
  rowOf(run("newline")); // row 0: a text starts like a line
  const repeats = CLASSES.map((name) =>
    MARKS.has(name) || name === "symbol" || name === "typographic" ? 1 : 0
  );
  return tables = { classes: classTable(), repeats: Uint8Array.from(repeats), next, cost };
}

/** Fills one cell of the tables and returns its next row. Working all of them out at once takes 15 ms of a cold start. */
export function learn(cell: number): number {
  const from = states[Math.floor(cell / CLASSES.length)];
  const to = CLASSES[cell % CLASSES.length];
  if (!from || !to) throw new RangeError(`Cannot follow a character: no such cell: received ${cell}`);
  const [price, state] = step(from, to);
  cost[cell] = price;
  return next[cell] = rowOf(state);
}

function rowOf(state: State): number {
  const key = keyOf(state);
  let row = rows.get(key);
  if (row === undefined) {
    if (states.length === MOST_STATES) {
      throw new RangeError(`Cannot add a state: the tables are full: received ${MOST_STATES}`);
    }
    row = (states.push(state) - 1) * CLASSES.length;
    rows.set(key, row);
  }
  return row;
}

function keyOf(state: State): number {
  let key = CLASS_NUMBERS[state.last];
  key = key * (LONGEST + 1) + state.position;
  key = key * WORD_STARTS.length + WORD_STARTS.indexOf(state.word);
  key = key * (NOISE_FLIPS + 1) + state.flips;
  key = key * (REPEAT.length + 1) + state.repeated;
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

function step(state: State, to: CharClass): Step {
  const before = beforeOf(state);
  if (to === "lower" || to === "upper" || to === "digit") return alphanumeric(state, before, to);
  if (to === "accented") return accented(state, before);
  if (to === "same") {
    const repeated = Math.min(REPEAT.length, state.repeated + 1);
    return [REPEAT[repeated - 1] ?? 0, run(state.last, { second_mark: true, repeated })];
  }
  if (MARKS.has(to)) return mark(state, before, to);
  if (to === state.last) {
    const costs = CONTINUE[to] ?? [MOVES.low_surrogate];
    const position = Math.min(costs.length + 1, state.position + 1);
    return [at(costs, position), run(to, { position })];
  }
  if (to === "low_surrogate") return [MOVES.low_surrogate, run(to)];
  const position = to === "space" && before === "line" ? 2 : 1; // indentation: the next space costs as in a run
  return [
    ENTER[before][to] ?? ENTER_SCRIPT[scriptBefore(state, before, to)][to] ?? 100,
    run(to, { position }),
  ];
}

function alphanumeric(state: State, before: Before, to: "lower" | "upper" | "digit"): Step {
  const joined = before === "digit" || state.last === "lower" || state.last === "upper";
  const flips = flipsOf(state, before, joined, to);
  if (flips >= NOISE_FLIPS) {
    const from = joined && state.flips >= NOISE_FLIPS ? state.last as keyof typeof NOISE : "any"; // joined: one of its keys
    return [NOISE[from][to], run(to, { flips })];
  }
  if (to === "digit") {
    if (state.last !== "digit") return [ENTER[before].digit ?? 100, run("digit", { flips })];
    return [DIGITS[state.position - 1] ?? 0, run("digit", { position: state.position % 3 + 1, flips })];
  }
  if (before !== "letter") {
    const word = before === "space" ? "spaced" : before === "digit" ? "inner" : "marked";
    return [ENTER[before][to] ?? 100, run(to, { word, flips })];
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

function accented(state: State, before: Before): Step {
  if (before !== "letter") {
    return [MOVES.accented_first, run("accented", { word: before === "space" ? "spaced" : "marked" })];
  }
  const position = Math.min(LONGEST, state.position + 1);
  return [MOVES.accented_in_word, run("accented", { position, word: state.word })];
}

function mark(state: State, before: Before, to: CharClass): Step {
  const noise = state.flips >= NOISE_FLIPS && (before === "letter" || before === "digit");
  // Base64 has `/` and `+` inside, UUIDs have `-`: what was noise before them is noise after them.
  const flips = to === "dash" || noise && (to === "slash" || to === "operator") ? state.flips : 0;
  const second_mark = before === "mark" || before === "marks";
  return [noise ? MOVES.mark_after_noise : ENTER[before][to] ?? 100, run(to, { flips, second_mark })];
}

function beforeOf(state: State): Before {
  if (state.last === "space") return state.position === 1 ? "space" : "line";
  if (state.last === "newline" || state.last === "tab") return "line";
  if (LETTERS.has(state.last)) return "letter";
  if (state.last === "digit") return "digit";
  if (MARKS.has(state.last)) return state.second_mark ? "marks" : "mark";
  return "script";
}

function scriptBefore(state: State, before: Before, to: CharClass): "space" | "script" | "other" {
  if (before === "space") return "space";
  if (to === "high_surrogate") return state.last === "low_surrogate" ? "script" : "other";
  return before === "script" ? "script" : "other";
}

function at(costs: readonly number[], position: number): number {
  return costs[Math.min(costs.length, position - 1) - 1] ?? 0;
}

/** First code unit of each stretch that has one class; Unicode 16 blocks, scripts that o200k treats alike in one class. */
const STRETCHES: readonly (readonly [number, CharClass])[] = [
  [0x0000, "control"],
  [0x00a0, "typographic"],
  [0x00c0, "accented"],
  [0x0250, "indic"],
  [0x0300, "accented"],
  [0x0370, "cyrillic"],
  [0x0530, "arabic"],
  [0x0900, "indic"],
  [0x1100, "hangul"],
  [0x1200, "indic"],
  [0x1e00, "accented"],
  [0x1f00, "cyrillic"],
  [0x2000, "typographic"],
  [0x2070, "symbol"],
  [0x2e80, "han"],
  [0x3000, "cjk_mark"],
  [0x3040, "kana"],
  [0x3100, "han"],
  [0x3130, "hangul"],
  [0x3190, "han"],
  [0x31f0, "kana"],
  [0x3200, "cjk_mark"],
  [0x3400, "han"],
  [0xa000, "indic"],
  [0xa960, "hangul"],
  [0xa980, "indic"],
  [0xac00, "hangul"],
  [0xd800, "high_surrogate"],
  [0xdc00, "low_surrogate"],
  [0xe000, "symbol"],
  [0xf900, "han"],
  [0xfb00, "arabic"],
  [0xfe00, "symbol"],
  [0xfe10, "cjk_mark"],
  [0xfe70, "arabic"],
  [0xff00, "cjk_mark"],
  [0xff66, "kana"],
  [0xffa0, "hangul"],
  [0xffe0, "symbol"],
];

const ASCII: readonly (readonly [CharClass, string])[] = [
  ["lower", "abcdefghijklmnopqrstuvwxyz"],
  ["upper", "ABCDEFGHIJKLMNOPQRSTUVWXYZ"],
  ["digit", "0123456789"],
  ["space", " "],
  ["newline", "\n\r"],
  ["tab", "\t"],
  ["quote", "\"'`"],
  ["open", "([{<"],
  ["close", ")]}>"],
  ["stop", ".,;:!?"],
  ["underscore", "_"],
  ["dash", "-"],
  ["slash", "/\\"],
  ["operator", "#$%&*+=@^|~"],
  ["typographic", "\u00d7\u00f7"],
];

function classTable(): Uint8Array {
  const table = new Uint8Array(0x10000);
  STRETCHES.forEach(([start, name], index) => {
    table.fill(CLASS_NUMBERS[name], start, STRETCHES[index + 1]?.[0] ?? table.length);
  });
  for (const [name, characters] of ASCII) {
    for (let index = 0; index < characters.length; index++) {
      table[characters.charCodeAt(index)] = CLASS_NUMBERS[name];
    }
  }
  return table;
}
