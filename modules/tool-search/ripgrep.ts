/** Asks ripgrep which files may match, so that only those are read here. */

/**
 * Matches in files that are not UTF-8, or have NUL: what they contain depends on how they are decoded, so
 * they are always read here.
 */
const OTHER_ENCODINGS = "(?-u:\\x00|[\\xC0\\xC1\\xF5-\\xFF]" +
  // a sequence that is not complete, or too long
  "|[\\xC2-\\xF4](?:[^\\x80-\\xBF]|\\z)|[\\xE0-\\xF4][\\x80-\\xBF](?:[^\\x80-\\xBF]|\\z)" +
  "|[\\xF0-\\xF4][\\x80-\\xBF]{2}(?:[^\\x80-\\xBF]|\\z)|(?:^|[\\x00-\\x7F])[\\x80-\\xBF]" +
  "|[\\xC2-\\xDF][\\x80-\\xBF]{2}|[\\xE0-\\xEF][\\x80-\\xBF]{3}|[\\xF0-\\xF4][\\x80-\\xBF]{4}" +
  // a character that has a shorter sequence, or is not a character
  "|\\xE0[\\x80-\\x9F]|\\xED[\\xA0-\\xBF]|\\xF0[\\x80-\\x8F]|\\xF4[\\x90-\\xBF])";

const OPTIONS: readonly string[] =
  "--no-config --no-ignore --no-mmap --no-messages --files-with-matches --null --text".split(" ");

/** The program `rg` of the plan's grant. */
export class Ripgrep {
  readonly #program: string;
  /** False when the program cannot be started. */
  #isThere = true;

  constructor(program: string) {
    this.#program = program;
  }

  /** Returns the `rg` that a plan grants; null: it grants none. */
  static granted(run: boolean | readonly string[]): Ripgrep | null {
    const isRipgrep = (entry: string) => entry === "rg" || entry.endsWith("/rg");
    const program = run === true ? "rg" : Array.isArray(run) ? run.find(isRipgrep) : undefined;
    return program === undefined ? null : new Ripgrep(program);
  }

  /**
   * Resolves to those of the files that may match, in their order; null when ripgrep cannot say.
   *
   * @param pattern Arguments that name the pattern.
   */
  async candidates(
    paths: readonly string[],
    pattern: readonly string[],
    signal: AbortSignal | undefined,
  ): Promise<string[] | null> {
    if (paths.length === 0) return []; // without paths it searches the working folder
    if (!this.#isThere) return null;
    const args = [...OPTIONS, ...pattern, "--regexp", OTHER_ENCODINGS, "--", ...paths];
    try {
      const command = new Deno.Command(this.#program, {
        args,
        env: { PATH: pathVariable() },
        clearEnv: true,
        stdin: "null",
        stdout: "piped",
        stderr: "null",
        ...(signal ? { signal } : {}),
      });
      const { code, stdout } = await command.output();
      signal?.throwIfAborted();
      if (code !== 0 && code !== 1) return null; // it cannot read the pattern, or a file
      const found = new Set(new TextDecoder().decode(stdout).split("\0"));
      return paths.filter((path) => found.has(path));
    } catch (error) {
      signal?.throwIfAborted();
      if (error instanceof Deno.errors.NotFound || error instanceof Deno.errors.NotCapable) {
        this.#isThere = false;
      }
      return null;
    }
  }
}

function pathVariable(): string {
  try {
    return Deno.env.get("PATH") ?? "/usr/local/bin:/usr/bin:/bin";
  } catch {
    return "/usr/local/bin:/usr/bin:/bin"; // a sandbox may not read it
  }
}
