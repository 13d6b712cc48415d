/** The search of the documentation: which sections match a query, and where. */

/** A section of a page; `anchor` is empty for the title of the page. */
export interface SearchSection {
  /** Name of the page, as in its URL. */
  readonly page: string;
  readonly title: string;
  readonly heading: string;
  readonly anchor: string;
  readonly text: string;
}

/** A piece of a text; `match` if the query has it. */
export interface Piece {
  readonly text: string;
  readonly match: boolean;
}

/** A section that matches. */
export interface SearchResult {
  readonly section: SearchSection;
  readonly heading: readonly Piece[];
  /** The text around its first match. */
  readonly excerpt: readonly Piece[];
}

/** Characters of an excerpt before and after its first match. */
const BEFORE = 40;
const AFTER = 120;
/** Matches in a text that count; a long section is not better for having more. */
const MOST_COUNTED = 5;

/** Words of a question that say nothing about its subject. */
const STOP_WORDS: ReadonlySet<string> = new Set(
  "a am an and are be can come could did do does for from get have how i if in into is it its me my of on or our should that the there this to us use was we what when where which who why will with would you your"
    .split(" "),
);

/** Words that mean the same to a person who looks for something. */
const SYNONYMS: readonly (readonly string[])[] = [
  ["cost", "price", "money", "dollar", "spend", "expensive", "budget", "cheap"],
  ["bound", "limit", "cap", "maximum", "restrict"],
  ["keep", "confine", "cage", "jail", "sandbox", "restrict", "lock in"],
  ["folder", "directory", "dir", "path"],
  ["rotate", "replace", "renew", "roll", "expire"],
  ["key", "credential", "password", "login"],
  ["migrate", "come from", "switch", "port", "convert", "import"],
  ["test", "check", "try", "verify", "validate"],
  ["stop", "cancel", "abort", "interrupt", "kill", "ctrl-c"],
  ["undo", "revert", "restore", "rollback", "roll back"],
  ["picture", "image", "screenshot", "photo", "attach"],
  ["approve", "approval", "allow", "confirm", "permission", "ask"],
  ["continue", "resume", "reopen"],
  ["conversation", "session", "chat"],
  ["memory", "context", "compaction", "history"],
  ["deploy", "publish", "host", "release", "ship"],
  ["local", "ollama", "offline"],
  ["model", "llm", "provider"],
  ["trace", "log", "events", "debug"],
  ["agent", "sub-agent", "subagent", "delegate"],
  ["crash", "recover", "restart", "survive"],
  ["docker", "container", "kubernetes", "podman"],
];

/** A word of a query. */
interface Word {
  readonly exact: RegExp;
  /** Matches the word, and those that mean the same. */
  readonly any: RegExp;
}

/**
 * Returns the sections that have each word of a query, or one that means the same, the best first; none for
 * an empty query. Words such as "how do I" are left out, so that a question finds what it asks for. The parts
 * of `retention.days` are words.
 */
export function search(sections: readonly SearchSection[], query: string, limit = 12): SearchResult[] {
  const typed = query.split(/\s+|\.(?=\w)/).filter((word) => word !== "");
  const telling = typed.filter((word) => !STOP_WORDS.has(word.toLowerCase().replace(/\W+$/, "")));
  const words = (telling.length > 0 ? telling : typed).map(wordOf);
  if (words.length === 0) return [];
  const long = typed.filter((word) => word.length > 2).map(escape); // "a" and "of" are in many words
  const marks = [...long.length > 0 ? long : typed.map(escape), ...words.map(({ any }) => any.source)];
  const any = new RegExp(marks.join("|"), "gi");
  return sections
    .map((section) => ({ section, score: scoreOf(section, words) }))
    .filter(({ score }) => score > 0)
    .sort((a, b) => b.score - a.score)
    .slice(0, limit)
    .map(({ section }) => ({
      section,
      heading: piecesOf(section.heading, any),
      excerpt: piecesOf(excerptOf(section.text, any), any),
    }));
}

function wordOf(typed: string): Word {
  const word = typed.replace(/[?!,;]+$/, "") || typed;
  const root = word.length > 4 ? word.replace(/(?<=[a-z]{3})s$/i, "") : word; // "costs" is in no heading
  const alike = SYNONYMS.filter((group) => group.includes(root.toLowerCase())).flat();
  const exact = escape(root);
  return {
    exact: new RegExp(exact, "gi"),
    any: new RegExp([exact, ...alike.map((other) => `\\b${escape(other)}`)].join("|"), "gi"),
  };
}

/**
 * Returns how well a section matches; 0 if it lacks a word. A word that means the same counts a quarter; the
 * page of questions is for those who ask with several words.
 */
function scoreOf(section: SearchSection, words: readonly Word[]): number {
  let score = 0;
  for (const { exact, any } of words) {
    const found = Math.max(pointsOf(section, exact), pointsOf(section, any) / 4);
    if (found === 0) return 0;
    score += found;
  }
  if (section.page === "questions" && words.length > 1) return score * 2;
  return section.page === "changelog" ? score / 4 : score;
}

function pointsOf({ page, title, heading, text }: SearchSection, word: RegExp): number {
  const place = heading.search(word);
  const titled = page.search(word) >= 0 || title.search(word) >= 0;
  const points = place === 0 ? 12 : place > 0 ? 8 : titled ? 4 : 0;
  return points + Math.min(text.match(word)?.length ?? 0, MOST_COUNTED);
}

/** Returns the text around its first match, cut between words. */
function excerptOf(text: string, any: RegExp): string {
  const place = Math.max(0, text.search(any));
  const [start, end] = [Math.max(0, place - BEFORE), place + AFTER];
  const before = text.slice(start, place);
  const after = text.slice(place, end);
  return (start === 0 ? before : `… ${before.replace(/^\S*\s/, "")}`) +
    (end >= text.length ? after : `${after.replace(/\s\S*$/, "")} …`);
}

/** Returns a text in pieces, in order. */
function piecesOf(text: string, any: RegExp): Piece[] {
  const pieces: Piece[] = [];
  let end = 0;
  for (const { 0: match, index } of text.matchAll(any)) {
    if (index > end) pieces.push({ text: text.slice(end, index), match: false });
    pieces.push({ text: match, match: true });
    end = index + match.length;
  }
  if (end < text.length) pieces.push({ text: text.slice(end), match: false });
  return pieces;
}

/** Returns a pattern that matches exactly a text. */
function escape(text: string): string {
  return text.replace(/[.*+?^${}()|[\]\\]/g, "\\$&");
}
