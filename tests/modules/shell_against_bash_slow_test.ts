/**
 * Every program that Bash starts for a text is one that `commandsOf()` finds, or the text is not certain.
 * Texts are made at random from pieces of shell syntax, and run with a PATH of programs that only write their
 * name.
 */
import fc from "fast-check";
import { commandsOf } from "../../modules/hooks-approval/commands.ts";
import { programOf } from "../../modules/hooks-approval/rules.ts";
import { assert } from "../assert.ts";
import { propertyOptions } from "../support/cases.ts";
import { temporaryFolder } from "../support/folder.ts";

const PROGRAMS = ["aa", "bb", "cc"];

const PIECES = [
  ...PROGRAMS,
  ...[
    " ",
    " ",
    "\n",
    ";",
    "&&",
    "||",
    "|",
    "|&",
    "&",
    "(",
    ")",
    "{ ",
    "; }",
    "! ",
    "'",
    '"',
    "\\",
    "#",
    " #",
    "$",
    "`",
  ],
  ...[
    "$(aa)",
    "`bb`",
    "$(",
    "${x:-$(cc)}",
    "${x:=",
    "}",
    "<(aa)",
    "<(",
    "$((1+",
    "))",
    "$'",
    '$"',
    "x=1 ",
    "x=",
    "x+=",
  ],
  ...[
    "if aa; then bb; fi",
    "if ",
    "; then ",
    "; else ",
    "; fi",
    "while ",
    "; do ",
    "; done",
    "for x in aa; do ",
  ],
  ...[
    "case aa in ",
    "bb) ",
    ";; ",
    "esac",
    "f() ",
    "function g ",
    "f",
    "g",
    "[[ a ",
    "]]",
    "[ a ]",
    "time ",
    "coproc ",
  ],
  ...[
    "<<E\n",
    "<<'E'\n",
    "<<-E\n",
    "\nE\n",
    "<<< ",
    ">o ",
    "2>&1 ",
    "&>o ",
    "<o ",
    ">&2",
    "eval ",
    "exec ",
    "command ",
  ],
  ...[
    "bash -c ",
    "sh -c ",
    "bash ",
    "sh ",
    "env ",
    "xargs ",
    "nohup ",
    "-c ",
    "-- ",
    "{aa,bb}",
    "a*",
    "~",
    "\r",
    "\t",
  ],
];

/** Returns a text as one quoted word. */
const quoted = (text: string) => `'${text.replaceAll("'", `'\\''`)}'`;

/** Texts that Bash can run, nested in all the ways that commands can be. */
const { command: VALID } = fc.letrec<{ word: string; command: string }>((tie) => {
  const program = fc.constantFrom(...PROGRAMS);
  const inner = (make: (command: string) => string) => tie("command").map(make);
  const two = (make: (one: string, other: string) => string) =>
    fc.tuple(tie("command"), tie("command")).map(([one, other]) => make(one, other));
  return {
    word: fc.oneof(
      { maxDepth: 3, depthIdentifier: "word" },
      fc.constantFrom("x", "'aa'", '"bb cc"', "$x", "a*", "{aa,bb}", "-c", "\\aa", "aa"),
      inner((one) => `$(${one}\n)`),
      inner((one) => `"$(${one}\n)"`),
      inner((one) => `\${x:-$(${one}\n)}`),
      inner((one) => `<(${one}\n)`),
    ),
    command: fc.oneof(
      { maxDepth: 4, depthIdentifier: "command" },
      fc.tuple(program, fc.array(tie("word"), { maxLength: 2 })).map((words) => words.flat().join(" ")),
      fc.tuple(tie("word"), program).map(([value, name]) => `x=${value} ${name}`),
      two((one, other) => `${one}; ${other}`),
      two((one, other) => `${one} && ${other}`),
      two((one, other) => `${one} | ${other}`),
      two((one, other) => `if ${one}; then ${other}; fi`),
      two((one, other) => `for y in 1; do ${one}; done; case x in x) ${other};; esac`),
      inner((one) => `(${one})`),
      inner((one) => `{ ${one}; }`),
      inner((one) => `f() { ${one}; }; f`),
      inner((one) => `eval ${quoted(one)}`),
      inner((one) => `bash -c ${quoted(one)}`),
      inner((one) => `env bash -xc ${quoted(one)} 2>o`),
      inner((one) => `nohup env -u y timeout 1 sh -c ${quoted(one)}`),
      inner((one) => `bash <<< ${quoted(one)}`),
      inner((one) => `bash <<'E'\n${one}\nE\naa`),
      inner((one) => `cat <<E\n$(${one}\n)\nE\naa`),
      program.map((name) => `xargs -n 1 ${name} <<< x`),
      program.map((name) => `exec ${name}`),
    ),
  };
});

/** Runs texts in Bash, and asserts that each program that it starts is found. */
async function assertFound(texts: fc.Arbitrary<string>): Promise<void> {
  await using temporary = await temporaryFolder();
  const bin = `${temporary.path}/bin`;
  await Deno.mkdir(bin);
  for (const name of PROGRAMS) {
    await Deno.writeTextFile(`${bin}/${name}`, `#!/bin/sh\necho ${name} >> "$LOG"\nexit 0\n`, {
      mode: 0o755,
    });
  }
  for (const name of ["bash", "sh", "env", "xargs", "nohup", "timeout"]) {
    const found = await new Deno.Command("sh", { args: ["-c", `command -v ${name}`] }).output();
    await Deno.symlink(new TextDecoder().decode(found.stdout).trim(), `${bin}/${name}`);
  }
  let cases = 0;
  await fc.assert(
    fc.asyncProperty(texts, async (command) => {
      // of its own: programs of an earlier text may still run
      const [work, log] = [`${temporary.path}/work${++cases}`, `${temporary.path}/log${cases}`];
      await Deno.mkdir(work);
      await Deno.writeTextFile(log, "");
      await new Deno.Command(`${bin}/timeout`, {
        args: ["-k", "1", "2", "bash", "-c", command],
        cwd: work,
        env: { PATH: bin, LOG: log },
        clearEnv: true,
        stdin: "null",
        stdout: "null",
        stderr: "null",
      }).output();
      const started = new Set((await Deno.readTextFile(log)).split("\n").filter((name) => name !== ""));
      const found = commandsOf({ command }, 1) ?? [];
      // a word that is computed may be any program
      if (found.some((words) => words === null || words[0]?.text == null)) return;
      const names = new Set(found.map((words) => programOf(words?.[0]?.text ?? "")));
      for (const name of started) assert(names.has(name), `${JSON.stringify(command)} starts ${name}`);
    }),
    propertyOptions(150, 1_000, 20_000),
  );
}

Deno.test("commandsOf() finds every program that Bash starts for pieces of syntax, or is not certain", () =>
  assertFound(
    fc.array(fc.constantFrom(...PIECES), { minLength: 1, maxLength: 12 }).map((pieces) => pieces.join("")),
  ));

Deno.test("commandsOf() finds every program that Bash starts for nested commands", () => assertFound(VALID));
