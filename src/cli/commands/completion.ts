/**
 * `preamp completion bash|zsh|fish`: prints a completion script, generated from the table of commands. Where
 * no known word is expected, file names are completed.
 */
import { adviceFor, type Flag, UsageError, valueName } from "../arguments.ts";
import { type CommandEntry, COMMANDS, type Commands } from "../commands.ts";

export const commands: Commands = {
  completion: {
    usage: "completion <bash|zsh|fish>",
    summary: "Prints a script that completes commands, flags and their values in a shell.",
    flags: [],
    details: () =>
      `bash, in ~/.bashrc:                   source <(preamp completion bash)
zsh, in ~/.zshrc behind compinit:     source <(preamp completion zsh)
fish, in ~/.config/fish/config.fish:  preamp completion fish | source
`,
    async run({ rest: [shell, ...more] }) {
      const shells = Object.keys(SCRIPTS).join(", ");
      if (shell === undefined || more.length > 0) {
        throw new UsageError(`Cannot print a completion script: name one shell, ${shells}`);
      }
      const script = Object.hasOwn(SCRIPTS, shell) ? SCRIPTS[shell] : undefined;
      if (script) return { text: script(await Promise.all(COMMANDS.map(completed))) };
      const advice = adviceFor(shell, Object.keys(SCRIPTS), `the shells are ${shells}`);
      throw new UsageError(`Cannot complete for ${JSON.stringify(shell.slice(0, 40))}: ${advice}`);
    },
  },
};

const SCRIPTS: Readonly<Record<string, (commands: readonly CompletedCommand[]) => string>> = {
  bash: bashScript,
  zsh: zshScript,
  fish: fishScript,
};

async function completed({ name, summary, load }: CommandEntry): Promise<CompletedCommand> {
  const { usage, flags } = await load();
  const own_flags = flags.filter(({ help }) => help !== "").map(completedFlag);
  if (name === "help") {
    const words = new Set(COMMANDS.map(({ name }) => name.split(" ")[0]!)); // split gives at least one
    return { name, summary, flags: own_flags, words: [...words] };
  }
  const help: CompletedFlag = { name: "help", help: "show help for the command", values: null };
  return { name, summary, flags: [...own_flags, help], words: choices(usage) };
}

function completedFlag(flag: Flag): CompletedFlag {
  const { name, short, value_optional, help } = flag;
  const value = valueName(flag);
  // of ID|new|last, the words that a person types as they are
  const words = value?.includes("|") ? value.split("|").filter((word) => word === word.toLowerCase()) : [];
  const values = value === undefined || value_optional ? null : words;
  return { name, help, values, ...(short === undefined ? {} : { short }) };
}

/** Returns the choices of a first argument such as `<bash|zsh|fish>`. */
function choices(usage: string): string[] {
  const [, listed] = /^[^<[]*<([a-z]+(?:\|[a-z]+)+)>/.exec(usage) ?? [];
  return listed?.split("|") ?? [];
}

/** A flag in a completion script. */
interface CompletedFlag {
  name: string;
  short?: string;
  help: string;
  /** Possible values; empty for any text, such as a file; null for a flag without a value. */
  values: readonly string[] | null;
}

/** A command in a completion script. */
interface CompletedCommand {
  /** One or two words. */
  name: string;
  summary: string;
  flags: readonly CompletedFlag[];
  /** Possible first arguments; empty for any text, such as a file. */
  words: readonly string[];
}

/** A word and its description. */
type Described = readonly [word: string, help: string];

/** Returns the script for bash 3.2 or later. */
function bashScript(commands: readonly CompletedCommand[]): string {
  const groups = [...groupsOf(commands)];
  const list = (words: readonly string[]) => shellQuote(words.join(" "));
  const values = valuesOf(commands).map(([flags, words]) =>
    `${flags.map(shellQuote).join("|")}) words=${list(words)} ;;`
  );
  const flags = commands.map(({ name, flags }) =>
    `${shellQuote(name)}) words=${list(flags.flatMap(spellings))} ;;`
  );
  const firsts = commands.filter(({ words }) => words.length > 0).map(({ name, words }) =>
    `${shellQuote(name)}) (( COMP_CWORD == ${name.split(" ").length + 1} )) && words=${list(words)} ;;`
  );
  const seconds = groups.map(([group, entries]) =>
    `${group}) words=${list(entries.map(([word]) => word))} ;;`
  );
  return `# bash completion of preamp, in ~/.bashrc: source <(preamp completion bash)
_preamp() {
  local current=\${COMP_WORDS[COMP_CWORD]} previous=\${COMP_WORDS[COMP_CWORD-1]} command=\${COMP_WORDS[1]} words=
  COMPREPLY=()
  if [[ $current == "=" ]]; then current=
  elif [[ $previous == "=" ]]; then previous=\${COMP_WORDS[COMP_CWORD-2]}
  fi
  if (( COMP_CWORD == 1 )); then
    words=${list(firstWords(commands).map(([word]) => word))}
    COMPREPLY=($(compgen -W "$words" -- "$current"))
    return
  fi
  case $command in
    ${groups.map(([group]) => group).join("|")})
      if (( COMP_CWORD == 2 )); then
        case $command in
${indent(seconds, 10)}
        esac
        COMPREPLY=($(compgen -W "$words" -- "$current"))
        return
      fi
      command="$command \${COMP_WORDS[2]}" ;;
  esac
  case "$command $previous" in
${indent(values, 4)}
  esac
  if [[ -z $words && $current == -* ]]; then
    case $command in
${indent(flags, 6)}
    esac
  elif [[ -z $words ]]; then
    case $command in
${indent(firsts, 6)}
    esac
  fi
  [[ -n $words ]] && COMPREPLY=($(compgen -W "$words" -- "$current"))
}
complete -o default -F _preamp preamp
`;
}

/** Returns the script for zsh, to be sourced or stored as `_preamp` in a folder of `fpath`. */
function zshScript(commands: readonly CompletedCommand[]): string {
  const groups = [...groupsOf(commands)];
  const described = (words: readonly Described[]) =>
    words.map(([word, help]) => shellQuote(`${word.replaceAll(":", "\\:")}:${help.replaceAll(":", "\\:")}`))
      .join(" ");
  const list = (words: readonly string[]) => words.map(shellQuote).join(" ");
  const values = valuesOf(commands).map(([flags, words]) =>
    `${flags.map(shellQuote).join("|")}) compadd -- ${list(words)}; return ;;`
  );
  const flags = commands.map(({ name, flags }) =>
    `${shellQuote(name)}) entries=(${
      described(flags.flatMap((flag) => spellings(flag).map((word): Described => [word, flag.help])))
    }) ;;`
  );
  const firsts = commands.filter(({ words }) => words.length > 0).map(({ name, words }) =>
    `${shellQuote(name)}) (( CURRENT == ${name.split(" ").length + 2} )) && compadd -- ${
      list(words)
    } && return ;;`
  );
  const seconds = groups.map(([group, entries]) => `${group}) entries=(${described(entries)}) ;;`);
  return `#compdef preamp
# zsh completion of preamp, in ~/.zshrc behind compinit: source <(preamp completion zsh)
_preamp() {
  local -a entries
  local command=$words[2]
  if (( CURRENT == 2 )); then
    entries=(${described(firstWords(commands))})
    _describe command entries
    return
  fi
  case $command in
    ${groups.map(([group]) => group).join("|")})
      if (( CURRENT == 3 )); then
        case $command in
${indent(seconds, 10)}
        esac
        _describe command entries
        return
      fi
      command="$command $words[3]" ;;
  esac
  case "$command $words[CURRENT-1]" in
${indent(values, 4)}
  esac
  if [[ $words[CURRENT] == -* ]]; then
    case $command in
${indent(flags, 6)}
    esac
    _describe flag entries
    return
  fi
  case $command in
${indent(firsts, 4)}
  esac
  _files
}
if [[ $funcstack[1] == _preamp ]]; then _preamp "$@"; else compdef _preamp preamp; fi
`;
}

/** Returns the script for fish 3 or later. */
function fishScript(commands: readonly CompletedCommand[]): string {
  const line = (condition: string, rest: string) => `complete -c preamp -n ${fishQuote(condition)} ${rest}`;
  const word = ([word, help]: Described) => `-f -a ${fishQuote(word)} -d ${fishQuote(help)}`;
  const lines = [
    ...firstWords(commands).map((described) => line("__preamp_next", word(described))),
    ...[...groupsOf(commands)].flatMap(([group, entries]) =>
      entries.map((described) => line(`__preamp_next ${group}`, word(described)))
    ),
    ...commands.flatMap(({ name, flags, words }) => [
      ...words.map((word) => line(`__preamp_next ${name}`, `-f -a ${fishQuote(word)}`)),
      ...flags.map(({ name: long, short, values, help }) => {
        const value = values === null
          ? ""
          : values.length === 0
          ? " -r"
          : ` -x -a ${fishQuote(values.join(" "))}`;
        const letter = short === undefined ? "" : ` -s ${short}`;
        return line(
          `__preamp_command ${name}`,
          `-l ${fishQuote(long)}${letter}${value} -d ${fishQuote(help)}`,
        );
      }),
    ]),
  ];
  return `# fish completion of preamp, in ~/.config/fish/config.fish: preamp completion fish | source
function __preamp_next --description 'the words before the cursor are exactly these'
  set -l given (commandline -opc)
  set -e given[1]
  test "$given" = "$argv"
end
function __preamp_command --description 'the words before the cursor begin with these'
  set -l given (commandline -opc)
  set -e given[1]
  test (count $given) -ge (count $argv)
  and test "$given[1..$(count $argv)]" = "$argv"
end
${lines.join("\n")}
`;
}

/** Returns the possible first words of a command line. */
function firstWords(commands: readonly CompletedCommand[]): Described[] {
  const groups = groupsOf(commands);
  const words = new Map<string, string>();
  for (const { name, summary } of commands) {
    const [first = name] = name.split(" ");
    const entries = groups.get(first);
    words.set(first, entries ? entries.map(([second]) => second).join(", ") : summary);
  }
  return [...words];
}

/** Returns the second words of two-word commands by their first word. */
function groupsOf(commands: readonly CompletedCommand[]): Map<string, Described[]> {
  const groups = new Map<string, Described[]>();
  for (const { name, summary } of commands) {
    const [first = "", second] = name.split(" ");
    if (second !== undefined) groups.set(first, [...groups.get(first) ?? [], [second, summary]]);
  }
  return groups;
}

/** Returns the possible values of flags, by the flags in the form `COMMAND --flag`. */
function valuesOf(commands: readonly CompletedCommand[]): [flags: string[], words: readonly string[]][] {
  return commands.flatMap(({ name, flags }) =>
    flags.flatMap((flag): [string[], readonly string[]][] =>
      flag.values === null || flag.values.length === 0
        ? []
        : [[spellings(flag).map((spelling) => `${name} ${spelling}`), flag.values]]
    )
  );
}

function spellings({ name, short }: CompletedFlag): string[] {
  return short === undefined ? [`--${name}`] : [`--${name}`, `-${short}`];
}

function indent(lines: readonly string[], columns: number): string {
  return lines.map((line) => " ".repeat(columns) + line).join("\n");
}

function shellQuote(text: string): string {
  return `'${text.replaceAll("'", `'\\''`)}'`;
}

function fishQuote(text: string): string {
  return `'${text.replaceAll("\\", "\\\\").replaceAll("'", "\\'")}'`;
}
