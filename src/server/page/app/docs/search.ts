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

/**
 * Returns the sections that have each word of a query, the best first; none for an empty query. The parts of
 * `retention.days` are words.
 */
export function search(sections: readonly SearchSection[], query: string, limit = 12): SearchResult[] {
  const words = query.split(/\s+|\.(?=\w)/).filter((word) => word !== "").map((word) =>
    new RegExp(escape(word), "gi")
  );
  if (words.length === 0) return [];
  const long = words.filter(({ source }) => source.length > 2); // "a" and "of" are in many words
  const any = new RegExp((long.length > 0 ? long : words).map(({ source }) => source).join("|"), "gi");
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

/** Returns how well a section matches; 0 if it lacks a word. */
function scoreOf({ page, title, heading, text }: SearchSection, words: readonly RegExp[]): number {
  let score = 0;
  for (const word of words) {
    const place = heading.search(word);
    const titled = page.search(word) >= 0 || title.search(word) >= 0;
    const points = place === 0 ? 12 : place > 0 ? 8 : titled ? 4 : 0;
    const found = points + Math.min(text.match(word)?.length ?? 0, MOST_COUNTED);
    if (found === 0) return 0;
    score += found;
  }
  return page === "changelog" ? score / 4 : score;
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
