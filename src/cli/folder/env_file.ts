/** Reads the variables of a `.env` file of a folder. */
/**
 * Variables that a file of a folder never sets, also of a trusted folder: those of this program and of its
 * screen, those that lead connections elsewhere, and those that change how programs are started.
 */
const REFUSED =
  /^(PREAMP_|PI_|LD_|DYLD_|DENO_|NODE_|GIT_)|_PROXY$|^(PATH|HOME|USERPROFILE|SHELL|BASH_ENV|ENV|IFS)$/i;

/** The variables of a file. */
export interface FileVariables {
  /** Name → value. */
  readonly variables: ReadonlyMap<string, string>;
  /** Names of {@link REFUSED}, which are not among `variables`; sorted. */
  readonly refused: readonly string[];
}

/** Resolves to the variables of lines such as `NAME=value`; other lines are ignored. */
export async function parseVariables(text: string): Promise<FileVariables> {
  if (text === "") return { variables: new Map(), refused: [] };
  const { default: dotenv } = await import("dotenv"); // CommonJS: the executable has no named exports of it
  const all = Object.entries(dotenv.parse(text));
  const refused = all.map(([name]) => name).filter((name) => REFUSED.test(name));
  return {
    variables: new Map(all.filter(([name]) => !REFUSED.test(name))),
    refused: refused.sort(),
  };
}
