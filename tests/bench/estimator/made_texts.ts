/** Texts that are made: what tools print and people chat. The same seed gives the same texts. */
import type { Random } from "./random.ts";

const WORDS =
  "user file path error value name list item count status order price total index token server client request response start end time date page size type data key id config module version build test branch commit message result session event hook tool plan model agent cache store queue worker thread socket port host query table column row insert update delete select merge split parse render load save open close read write"
    .split(" ");
const FIRST = ["Ann", "Luis", "Mei", "Omar", "Priya", "Tom", "Zoë", "Jürgen", "Ana", "Kenji"];
const LEVELS = ["INFO", "WARN", "DEBUG", "ERROR", "info", "warn", "error"];
const EMOJI =
  "😀 😂 🤣 😊 😍 🥰 😘 🤔 😅 😭 😡 👍 👎 🙏 👏 🙌 💪 🔥 ✨ 🎉 🚀 ✅ ❌ ⚠️ ❤️ 💔 🌍 🌞 ☕ 🍕 🎂 🐱 🐶 🏆 📈 📌 💡 🛠️ 👩‍💻 🧑‍🚀 🇩🇪 🇯🇵 🇧🇷 🏳️‍🌈 👨‍👩‍👧 🫠 🥲 🤷‍♂️ 👋🏽"
    .split(" ");
const CHAT = [
  "ok",
  "see you tomorrow",
  "that went well",
  "great job team",
  "I am late again",
  "lunch?",
  "the build is green",
  "who broke the tests",
  "thanks a lot",
  "happy birthday",
  "no way",
  "let me check",
  "deploying now",
  "love it",
];
const BASE64 = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
const HEX = "0123456789abcdef";

function letters(random: Random, alphabet: string, length: number): string {
  let text = "";
  for (let index = 0; index < length; index++) text += alphabet[random.int(0, alphabet.length - 1)];
  return text;
}

function uuid(random: Random): string {
  return [8, 4, 4, 4, 12].map((length) => letters(random, HEX, length)).join("-");
}

function stamp(random: Random): string {
  return new Date(1.7e12 + random.next() * 6e10).toISOString();
}

function phrase(random: Random, words: number): string {
  return Array.from({ length: words }, () => random.pick(WORDS)).join(" ");
}

function address(random: Random): string {
  const host = `${random.pick(WORDS)}.example.${random.pick(["org", "com", "net"])}`;
  return random.pick([
    `${random.pick(WORDS)}@${host}`,
    `https://${host}/${random.pick(WORDS)}/${random.int(1, 99999)}?${random.pick(WORDS)}=${random.int(1, 9)}`,
  ]);
}

function path(random: Random): string {
  return `${random.pick(["/home/", "src/", "/var/lib/", "./"])}${random.pick(WORDS)}/${random.pick(WORDS)}-${
    random.pick(WORDS)
  }.${random.pick(["ts", "json", "md", "py", "log"])}`;
}

function value(random: Random, vocabulary: readonly string[], depth: number): unknown {
  const kind = random.int(0, depth > 2 ? 6 : 9);
  if (kind === 0) return random.int(0, 100_000);
  if (kind === 1) return Number((random.next() * random.pick([1, 100, 1000])).toFixed(random.int(1, 5)));
  if (kind === 2) return random.next() < 0.5;
  if (kind === 3) {
    return random.pick([
      null,
      "",
      stamp(random),
      uuid(random),
      address(random),
      path(random),
      `${random.pick(WORDS)}_${random.int(1, 99)}`,
    ]);
  }
  if (kind <= 6) {
    return Array.from(
      { length: random.int(1, 8) },
      () => random.pick(random.next() < 0.6 ? vocabulary : WORDS),
    ).join(" ");
  }
  if (kind === 7) return Array.from({ length: random.int(0, 6) }, () => value(random, vocabulary, depth + 1));
  return record(random, vocabulary, depth + 1);
}

function record(random: Random, vocabulary: readonly string[], depth = 0): Record<string, unknown> {
  const entries = Array.from({ length: random.int(2, 7) }, () => {
    const [first, second] = [random.pick(WORDS), random.pick(random.next() < 0.5 ? vocabulary : WORDS)];
    const name = random.pick([
      first,
      `${first}_${second}`,
      first + second[0]!.toUpperCase() + second.slice(1),
    ]);
    return [name, value(random, vocabulary, depth)];
  });
  return Object.fromEntries(entries);
}

function logLine(random: Random): string {
  const where = `${random.pick(WORDS)}.${random.pick(WORDS)}`;
  return random.pick([
    () =>
      `${stamp(random)} ${random.pick(LEVELS)} [${where}] ${phrase(random, 5)} ${random.pick(WORDS)}=${
        random.int(1, 9999)
      }`,
    () =>
      `10.${random.int(0, 255)}.${random.int(0, 255)}.${random.int(1, 254)} - - [${
        random.int(1, 28)
      }/Nov/2026:${random.int(10, 23)}:${random.int(10, 59)}:${random.int(10, 59)} +0000] "GET /api/${
        random.pick(WORDS)
      }/${random.int(1, 9999)} HTTP/1.1" ${random.pick([200, 201, 304, 404, 500])} ${random.int(100, 90000)}`,
    () =>
      `${random.pick(LEVELS).toLowerCase()}: ${phrase(random, 6)} (${random.int(1, 900)} ms) request_id=${
        uuid(random)
      }`,
    () =>
      `    at ${random.pick(WORDS)} (/app/src/${random.pick(WORDS)}/${random.pick(WORDS)}.ts:${
        random.int(1, 900)
      }:${random.int(1, 80)})`,
    () =>
      `-rw-r--r-- 1 root root ${random.int(100, 99999)} Nov ${random.int(1, 28)} ${random.int(10, 23)}:${
        random.int(10, 59)
      } ${random.pick(WORDS)}_${random.pick(WORDS)}.json`,
    () =>
      `${random.pick(["ok", "FAIL", "PASS", "not ok"])} ${random.int(1, 400)} - ${phrase(random, 6)} ... ${
        random.pick(["ok", "failed"])
      } (${random.int(1, 900)}ms)`,
  ])();
}

function table(random: Random): string {
  const columns = random.int(3, 6);
  const head = Array.from({ length: columns }, () => random.pick(WORDS));
  const cell = () =>
    random.pick([
      phrase(random, 1),
      String(random.int(0, 9999)),
      random.pick(FIRST),
      random.next().toFixed(3),
    ]);
  const rows = Array.from({ length: random.int(5, 25) }, () => Array.from({ length: columns }, cell));
  if (random.next() < 0.5) return [head, ...rows].map((row) => row.join(",")).join("\n");
  return [head, head.map(() => "---"), ...rows].map((row) => `| ${row.join(" | ")} |`).join("\n");
}

function chatLine(random: Random): string {
  const faces = Array.from({ length: random.int(1, 4) }, () => random.pick(EMOJI)).join(
    random.pick(["", "", " "]),
  );
  return random.pick([
    `${random.pick(CHAT)} ${faces}`,
    `${faces} ${random.pick(CHAT)}`,
    faces,
    `${random.pick(FIRST)}: ${random.pick(CHAT)}${faces}`,
  ]);
}

function lines(random: Random, least: number, most: number, line: (random: Random) => string): string {
  return Array.from({ length: random.int(least, most) }, () => line(random)).join("\n");
}

/** Kind → how one text of it is made. */
export const MAKERS: Readonly<Record<string, (random: Random, vocabulary: readonly string[]) => string>> = {
  json: (random, vocabulary) => {
    const data = Array.from({ length: random.int(1, 8) }, () => record(random, vocabulary));
    return random.next() < 0.5 ? JSON.stringify(data) : JSON.stringify(data, null, 2);
  },
  logs: (random) => lines(random, 8, 40, logLine),
  tables: table,
  base64: (random, vocabulary) =>
    random.next() < 0.6 ? letters(random, BASE64, random.int(200, 3000)) : btoa(
      Array.from({ length: random.int(30, 200) }, () => random.pick(vocabulary)).join(" ").replace(
        /[^ -~]/g,
        "",
      ),
    ),
  hex: (random) =>
    random.next() < 0.5 ? letters(random, HEX, random.int(200, 1500)) : lines(random, 5, 40, uuid),
  emoji: (random) => lines(random, 8, 40, chatLine),
};

/** Marks between sentences and words of a language. */
const MARKS: Readonly<Record<string, { gap: string; comma: string; ends: readonly string[] }>> = {
  chinese: { gap: "", comma: "，", ends: ["。", "。", "。", "？", "！"] },
  japanese: { gap: "", comma: "、", ends: ["。", "。", "？"] },
  thai: { gap: "", comma: " ", ends: [" "] },
};
const USUAL = { gap: " ", comma: ", ", ends: [". ", ". ", ". ", "? ", "! "] };

/** Returns everyday talk: the commonest words of a language, each as often as its rank says (Zipf's law), in sentences. */
export function everydayText(random: Random, language: string, words: readonly string[]): string {
  const { gap, comma, ends } = MARKS[language] ?? USUAL;
  let text = "";
  const length = random.int(400, 2500) / (gap === "" ? 4 : 1);
  while (text.length < length) {
    const sentence: string[] = [];
    for (let count = random.int(4, 14); count > 0; count--) {
      // The inverse of the harmonic numbers: rank r with a chance of about 1 / r.
      const rank = Math.min(
        words.length - 1,
        Math.floor(Math.exp(random.next() * Math.log(words.length))) - 1,
      );
      sentence.push(words[rank]!);
    }
    if (random.next() < 0.1) sentence.push(String(random.int(1, 2026)));
    const joined = sentence.length > 8
      ? `${sentence.slice(0, 5).join(gap)}${comma}${sentence.slice(5).join(gap)}`
      : sentence.join(gap);
    text += joined[0]!.toUpperCase() + joined.slice(1) + random.pick(ends);
  }
  return text;
}
