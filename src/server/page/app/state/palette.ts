/** What the palette finds: actions, plans, runs, sessions and sections of the documentation. */

/** Something that the palette opens or does. */
export interface Command {
  readonly kind: "action" | "plan" | "run" | "session" | "docs";
  readonly label: string;
  /** Further words: shown, and found too. */
  readonly hint: string;
  readonly run: () => unknown;
}

/** Returns the words of a query, in small letters. */
export function wordsOf(query: string): string[] {
  return query.toLowerCase().split(/\s+/).filter((word) => word !== "");
}

/** Returns the commands that have each word of a query, the best first, at most `limit`. */
export function findCommands(commands: readonly Command[], query: string, limit = 12): Command[] {
  const words = wordsOf(query);
  return commands
    .map((command) => ({ command, score: scoreOf(command, words) }))
    .filter(({ score }) => score > 0)
    .sort((a, b) => b.score - a.score) // keeps the order of equal ones
    .slice(0, limit)
    .map(({ command }) => command);
}

function scoreOf({ kind, label, hint }: Command, words: readonly string[]): number {
  const [first, second] = [label.toLowerCase(), `${kind} ${hint}`.toLowerCase()];
  let score = 1;
  for (const word of words) {
    const at = first.indexOf(word);
    if (at < 0 && !second.includes(word)) return 0;
    score += at === 0 ? 4 : at > 0 ? first[at - 1] === " " ? 3 : 2 : 1;
  }
  return score;
}
