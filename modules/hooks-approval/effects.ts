/**
 * What commands do beyond what their names say: options that write a file or run a program, and words that
 * the shell evaluates again. A file that is written is found like a redirection, and a variable that is set
 * like an assignment; what may run anything is a command that is not known.
 */
import { type FoundCommand, isAssignment } from "./rules.ts";
import { literal, type Word } from "../shell/commands.ts";

const UNKNOWN: readonly FoundCommand[] = [null];
/** A file that is not known. */
const ANY_FILE: Word = { text: null, splits: false };

/** Options of a program, separated by spaces: `-x` also in a group of letters, `--name` also shortened. */
interface ProgramOptions {
  /** Options whose value is a file that is written. */
  readonly writes?: string;
  /** Options that write files which are not known, or delete files. */
  readonly changes?: string;
  /** Options that run a program, or read further options. */
  readonly runs?: string;
  /** Options with a value, where the place of an operand matters. */
  readonly valued?: string;
  /** Place of the operand that is a file that is written, from 1. */
  readonly written_operand?: number;
  /** Beginning of an operand whose rest is a file that is written. */
  readonly written_after?: string;
  /** Whether an option is a whole word, as in `-fprint`, and the first word may be options without `-`. */
  readonly whole?: boolean;
  readonly bare?: boolean;
}

const SHARED_GIT: ProgramOptions = {
  writes: "--output",
  runs: "--ext-diff --textconv --filters --open-files-in-pager --upload-pack --receive-pack --exec --extcmd",
};

/** Programs whose options write or run, by their names; of git by the subcommand. */
const PROGRAMS: Readonly<Record<string, ProgramOptions>> = {
  ack: { runs: "--pager" },
  ag: { runs: "--pager" },
  "clang-format": { changes: "-i", whole: true },
  curl: {
    writes:
      "-o --output -D --dump-header -c --cookie-jar --trace --trace-ascii --stderr --libcurl --etag-save",
    changes: "-O --remote-name --remote-name-all --output-dir --hsts --alt-svc",
    runs: "-K --config",
  },
  dd: { written_after: "of=" },
  eslint: { writes: "-o --output-file", changes: "--fix" },
  fd: { runs: "-x --exec -X --exec-batch" },
  fdfind: { runs: "-x --exec -X --exec-batch" },
  find: { writes: "-fprint -fprint0 -fprintf -fls", changes: "-delete", whole: true },
  "git archive": { writes: "-o --output", runs: SHARED_GIT.runs! },
  "git clone": { runs: `-u -c --config --template ${SHARED_GIT.runs}` },
  "git difftool": { ...SHARED_GIT, runs: `-x -t --tool ${SHARED_GIT.runs}` },
  "git format-patch": { ...SHARED_GIT, writes: "-o --output-directory --output" },
  "git grep": { runs: `-O ${SHARED_GIT.runs}` },
  "git rebase": { runs: `-x ${SHARED_GIT.runs}` },
  go: { writes: "-o -coverprofile -cpuprofile -memprofile", runs: "-exec -toolexec -vettool", whole: true },
  gofmt: { changes: "-w" },
  iconv: { writes: "-o --output" },
  less: { writes: "-o -O --log-file --LOG-FILE" },
  man: { runs: "-P --pager -H --html" },
  openssl: { writes: "-out -keyout -writerand", runs: "-engine -provider", whole: true },
  prettier: { changes: "-w --write" },
  rg: { runs: "--pre --hostname-bin" },
  rsync: { runs: "-e --rsh --rsync-path" },
  shuf: { writes: "-o --output" },
  sort: { writes: "-o --output", runs: "--compress-program" },
  tar: {
    writes: "--index-file -g --listed-incremental",
    changes: "--remove-files",
    runs: "-I --use-compress-program -F --info-script --new-volume-script --to-command --checkpoint-action " +
      "--rsh-command --rmt-command",
    bare: true,
  },
  tree: { writes: "-o" },
  uniq: { valued: "-f -s -w --skip-fields --skip-chars --check-chars", written_operand: 2 },
  wget: {
    writes: "-O --output-document -o --output-file -a --append-output",
    runs: "-e --execute --use-askpass",
  },
  xxd: { valued: "-c -g -l -n -o -s -cols -groupsize -len -seek", written_operand: 2 },
  yq: { changes: "-i --inplace" },
  zip: { runs: "-TT --unzip-command", whole: true },
};

/** Programs that run what their words say: with any words they can do anything. */
const INTERPRETERS: ReadonlySet<string> = new Set(
  ("awk bash bun cargo dash deno docker ed ex gawk gdb git kubectl ksh lua make mawk mysql node npm npx perl php " +
    "pnpm psql python python3 ruby sed sh sqlite3 tclsh vi vim yarn zsh").split(" "),
);

/**
 * Returns what a program may do with words that a rule does not name, for a person; null when nothing is
 * known of it.
 *
 * @param words The words that the rule names.
 */
export function wideEffects([program = "", sub, ...more]: readonly string[]): string | null {
  if (program.includes("*")) return "any program may be meant";
  if (INTERPRETERS.has(program) && (program !== "git" || sub === undefined)) {
    return `${program} runs what its words say`;
  }
  const name = program === "git" ? `git ${sub}` : program;
  const options = Object.hasOwn(PROGRAMS, name) ? PROGRAMS[name]! : program === "git" ? SHARED_GIT : null;
  if (options === null || more.includes("--")) return null;
  const { writes, changes, runs, written_operand } = options;
  if (written_operand !== undefined) return `${name} writes its operand ${written_operand}`;
  const [first] = (writes ?? changes ?? options.written_after ?? runs!).split(" ");
  const verb = (writes ?? changes ?? options.written_after) === undefined ? "runs programs" : "writes files";
  return `${name} ${verb} with options such as ${first}`;
}

/** Returns what a command does beyond its name. */
export function effectsOf(name: string, words: readonly Word[]): readonly FoundCommand[] {
  if (Object.hasOwn(BUILTINS, name)) return BUILTINS[name]!(words.slice(1));
  if (name === "git") return effectsOfGit(words);
  if (name === "sed" || name === "gsed") return effectsOfSed(words.slice(1));
  if (/^[gmn]?awk$/.test(name)) return effectsOfAwk(words.slice(1));
  return Object.hasOwn(PROGRAMS, name) ? effectsOfOptions(PROGRAMS[name]!, words.slice(1)) : [];
}

function written(file: Word): FoundCommand {
  return [literal(">"), file];
}

function effectsOfOptions(options: ProgramOptions, words: readonly Word[]): readonly FoundCommand[] {
  const { written_operand, written_after, whole = false, bare = false } = options;
  const listOf = (text = "") => text.split(" ").filter((option) => option !== "");
  const writes = listOf(options.writes);
  const changes = listOf(options.changes);
  const runs = listOf(options.runs);
  const valued = listOf(options.valued);
  const found: FoundCommand[] = [];
  const operands: Word[] = [];
  for (let at = 0; at < words.length; at++) {
    const { text } = words[at]!;
    if (text === "--" && !whole) {
      operands.push(...words.slice(at + 1));
      break;
    }
    const option = text !== null && bare && at === 0 && /^[A-Za-z]/.test(text) ? `-${text}` : text;
    if (option === null || !option.startsWith("-") || option === "-") {
      if (written_after !== undefined && option?.startsWith(written_after)) {
        found.push(written(literal(option.slice(written_after.length))));
      }
      operands.push(words[at]!);
      continue;
    }
    const valueOf = (names: readonly string[]) => optionValue(option, names, whole, words[at + 1]);
    if (valueOf(runs) !== null) found.push(null);
    if (valueOf(changes) !== null) found.push(written(ANY_FILE));
    const file = valueOf(writes);
    if (file !== null) found.push(written(file.word));
    if ((file ?? valueOf(valued))?.is_next) at++;
  }
  const operand = written_operand === undefined ? undefined : operands[written_operand - 1];
  return operand ? [...found, written(operand)] : found;
}

/** Returns the value of an option, if a word is one of these; null: it is another one. */
function optionValue(
  word: string,
  names: readonly string[],
  whole: boolean,
  next: Word = ANY_FILE,
): { word: Word; is_next: boolean } | null {
  const [given = "", ...rest] = word.split("=");
  const after = rest.length > 0 ? literal(rest.join("=")) : null;
  for (const name of names) {
    if (whole || name.length > 2 && !name.startsWith("--")) {
      if (given === name || given === `-${name}`) return { word: after ?? next, is_next: after === null };
    } else if (name.startsWith("--")) {
      if (given.length > 2 && name.startsWith(given)) return { word: after ?? next, is_next: after === null };
    } else if (/^-[^-]/.test(word) && word.includes(name[1]!)) {
      const place = word.indexOf(name[1]!);
      // before it there may be an option with a value
      if (place > 1) return { word: ANY_FILE, is_next: false };
      return word.length > 2
        ? { word: literal(word.slice(2)), is_next: false }
        : { word: next, is_next: true };
    }
  }
  return null;
}

/** Options of git before the subcommand that have a value in the next word. */
const GIT_VALUED: ReadonlySet<string | null> = new Set(["-C", "--git-dir", "--work-tree", "--namespace"]);

function effectsOfGit(words: readonly Word[]): readonly FoundCommand[] {
  let at = 1;
  for (; words[at]?.text?.startsWith("-"); at++) {
    const { text } = words[at]!;
    if (/^-c|^--(?:con|exec-p)/.test(text!)) return UNKNOWN; // --config-env, --exec-path
    if (GIT_VALUED.has(text)) at++;
  }
  const sub = words[at]?.text ?? "";
  const runsWord = sub === "bisect" && "run" || sub === "submodule" && "foreach";
  if (sub === "filter-branch" || runsWord && words.some(({ text }) => text === runsWord)) return UNKNOWN;
  const options = Object.hasOwn(PROGRAMS, `git ${sub}`) ? PROGRAMS[`git ${sub}`]! : SHARED_GIT;
  return effectsOfOptions(options, words.slice(at + 1));
}

/** Options of sed without a value. */
const SED_FLAGS =
  /^(?:-[nErsuz]+|--(?:quiet|silent|regexp-extended|null-data|separate|unbuffered|posix|debug))$/;

/** Returns the files that sed changes; unknown, unless its commands neither write nor run. */
function effectsOfSed(words: readonly Word[]): readonly FoundCommand[] {
  const scripts: (string | null)[] = [];
  const operands: Word[] = [];
  let isInPlace = false;
  for (let at = 0; at < words.length; at++) {
    const { text } = words[at]!;
    if (text === null || text === "-" || !text.startsWith("-")) operands.push(words[at]!);
    else if (text === "-e" || text === "--expression") scripts.push(words[++at]?.text ?? null);
    else if (text.startsWith("--expression=")) scripts.push(text.slice("--expression=".length));
    else if (text.startsWith("-e")) scripts.push(text.slice(2));
    else if (/^(?:-[nErsuz]*i|--in-place(?:=|$))/.test(text)) isInPlace = true;
    else if (!SED_FLAGS.test(text)) return UNKNOWN;
  }
  if (scripts.length === 0) scripts.push(operands.shift()?.text ?? null);
  if (!scripts.every((script) => script !== null && isHarmlessSed(script))) return UNKNOWN;
  return isInPlace ? operands.map(written) : [];
}

const SED_REGEX = (end: string) => String.raw`(?:(?!${end})[^\\\n[]|\\.|\[\^?\]?(?:(?!${end})[^\]\n\\])*\])*`;
const SED_ADDRESS = String.raw`(?:\d+(?:~\d+)?|\$|\/${SED_REGEX("\\/")}\/[IM]?)`;
/** A command of sed that neither writes a file nor runs a program, with its addresses. */
const SED_COMMAND = new RegExp(
  String.raw`[\s;{}]*(?:${SED_ADDRESS}(?:\s*,\s*(?:[+~]?${SED_ADDRESS}))?\s*)?!?\s*(?:` +
    [
      String.raw`[{}]`,
      String.raw`[=dDgGhHnNpPxzF](?=\s*(?:[;}\n]|$))`,
      String.raw`[lqQ][ \t]*\d*(?=\s*(?:[;}\n]|$))`,
      String.raw`[btT:][ \t]*\w*(?=\s*(?:[;}\n]|$))`,
      String.raw`[aic][ \t]*\\?[^\n\\]*(?=\n|$)`,
      String.raw`y([^\\\n\w\s[\]])(?:(?!\1)[^\\\n]|\\.)*\1(?:(?!\1)[^\\\n]|\\.)*\1(?=\s*(?:[;}\n]|$))`,
      String.raw`s([^\\\n\w\s[\]])${SED_REGEX("\\2")}\2(?:(?!\2)[^\\\n]|\\.)*\2[gpiIM\d]*(?=\s*(?:[;}\n]|$))`,
    ].join("|") + ")",
  "y",
);

function isHarmlessSed(script: string): boolean {
  for (let at = 0;; at = SED_COMMAND.lastIndex) {
    SED_COMMAND.lastIndex = at;
    if (!SED_COMMAND.test(script)) return /^[\s;{}]*$/.test(script.slice(at));
  }
}

/** Returns nothing if the program of awk neither writes nor runs. */
function effectsOfAwk(words: readonly Word[]): readonly FoundCommand[] {
  let at = 0;
  for (; words[at]?.text?.startsWith("-"); at++) {
    const text = words[at]!.text!;
    if (text === "--") {
      at++;
      break;
    }
    if (!/^-[Fv]/.test(text)) return UNKNOWN;
    if (text.length === 2) at++;
  }
  const program = words[at]?.text;
  if (program == null) return UNKNOWN;
  // without these there is no way to a file or a program; those in a text count too
  return /system|getline|[@>|]/.test(program.replaceAll("||", "")) ? UNKNOWN : [];
}

/** Returns what a command of the shell itself does. */
type BuiltinEffects = (words: readonly Word[]) => readonly FoundCommand[];

const anything: BuiltinEffects = (words) => words.length > 0 ? UNKNOWN : [];

/** Returns unknown when a word has an index that is no number: the shell evaluates it as an expression. */
const evaluatesIndexes: BuiltinEffects = (words) =>
  words.some(({ text }) => text !== null && /\[(?!\d+\]|[@*]\])./s.test(text)) ? UNKNOWN : [];

/** Returns the variables that are set; those of lower case change nothing of what runs. */
const setsVariables: BuiltinEffects = (words) => [
  ...evaluatesIndexes(words),
  ...words.flatMap(({ text }) => text !== null && /^[A-Z_]\w*$/.test(text) ? [[literal(`${text}=$`)]] : []),
];

const declares: BuiltinEffects = (words) => [
  ...words.some(({ text }) => /^[-+]\w*[in]/.test(text ?? "")) ? UNKNOWN : [], // -i evaluates, -n refers
  ...evaluatesIndexes(words),
  ...words.filter(isAssignment).map((word) => [word]),
];

const hasOption = (letters: string, otherwise: BuiltinEffects = () => []): BuiltinEffects => (words) =>
  words.some(({ text }) => new RegExp(`^-\\w*[${letters}]`).test(text ?? "")) ? UNKNOWN : otherwise(words);

const BUILTINS: Readonly<Record<string, BuiltinEffects>> = {
  "[": evaluatesIndexes,
  alias: anything,
  autoload: anything,
  bind: anything,
  compgen: hasOption("CFW"),
  complete: anything,
  declare: declares,
  emulate: anything,
  enable: anything,
  export: declares,
  fc: anything,
  getopts: setsVariables,
  hash: hasOption("p"),
  jobs: hasOption("x"),
  let: (words) =>
    words.every(({ text }) => /^[\w\s+*/%<>=!&|^~?:,.-]*$/.test(text ?? "")) ? [[literal("((")]] : UNKNOWN,
  local: declares,
  mapfile: hasOption("C", setsVariables),
  print: anything,
  printf: (words) => {
    const option = words[0]?.text ?? "";
    if (!option.startsWith("-v")) return [];
    return setsVariables(option === "-v" ? words.slice(1, 2) : [literal(option.slice(2))]);
  },
  read: setsVariables,
  readarray: hasOption("C", setsVariables),
  readonly: declares,
  sched: anything,
  test: evaluatesIndexes,
  typeset: declares,
  unset: evaluatesIndexes,
  wait: setsVariables,
  zcompile: anything,
  zmodload: anything,
};
