/** The SSRF corpus: ways to write addresses that a module must not reach . */

const LOOPBACK = [127, 0, 0, 1];
const PRIVATE: readonly (readonly number[])[] = [
  [0, 0, 0, 0],
  [10, 0, 0, 1],
  [100, 64, 0, 1],
  [127, 0, 0, 2],
  [127, 255, 255, 254],
  [169, 254, 169, 254],
  [172, 16, 0, 1],
  [192, 168, 1, 1],
  [198, 18, 0, 1],
  [224, 0, 0, 1],
  [240, 0, 0, 1],
  [255, 255, 255, 255],
];

/** Returns hosts as a URL may have them. At least 250 of them. */
export function hostSpellings(): string[] {
  const quads = [LOOPBACK, ...PRIVATE];
  const hosts = [
    ...quads.flatMap((quad) => [...v4Spellings(quad), ...v6Spellings(quad)]),
    ...v6Hosts(),
    ...names(),
  ];
  return [...new Set(hosts)];
}

function v4Spellings([a = 0, b = 0, c = 0, d = 0]: readonly number[]): string[] {
  const whole = ((a * 256 + b) * 256 + c) * 256 + d;
  const hex = (value: number) => `0x${value.toString(16)}`;
  const octal = (value: number) => `0${value.toString(8)}`;
  const dotted = `${a}.${b}.${c}.${d}`;
  return [
    dotted,
    `${dotted}.`,
    String(whole),
    hex(whole),
    hex(whole).toUpperCase().replace("0X", "0x"),
    octal(whole),
    `${a}.${(b * 256 + c) * 256 + d}`,
    `${a}.${b}.${c * 256 + d}`,
    `${hex(a)}.${hex(b)}.${hex(c)}.${hex(d)}`,
    `${octal(a)}.${octal(b)}.${octal(c)}.${octal(d)}`,
    `${hex(a)}.${b}.${octal(c)}.${d}`,
    `0x00000${a.toString(16)}.${b}.${c}.${d}`,
    `000000${a.toString(8)}.${b}.${c}.${d}`,
    [...dotted].map((letter) => letter === "." ? "\u3002" : letter).join(""), // ideographic full stop
    [...dotted].map((letter) => letter === "." ? "\uff0e" : fullWidth(letter)).join(""),
    [...dotted].map((letter) => `%${letter.charCodeAt(0).toString(16)}`).join(""),
  ];
}

function v6Spellings([a = 0, b = 0, c = 0, d = 0]: readonly number[]): string[] {
  const high = (a * 256 + b).toString(16);
  const low = (c * 256 + d).toString(16);
  return [
    `[::ffff:${a}.${b}.${c}.${d}]`,
    `[::ffff:${high}:${low}]`,
    `[0:0:0:0:0:FFFF:${high}:${low}]`,
    `[::${high}:${low}]`,
    `[64:ff9b::${high}:${low}]`,
    `[2002:${high}:${low}::1]`,
  ];
}

function v6Hosts(): string[] {
  return [
    "::1",
    "::",
    "0:0:0:0:0:0:0:1",
    "0000:0000:0000:0000:0000:0000:0000:0001",
    "fc00::1",
    "fd00:ec2::254",
    "fe80::1",
  ]
    .concat(["fec0::1", "ff02::1", "2001:db8::1", "100::1", "::ffff:0:127.0.0.1", "64:ff9b:1::1", "2001::1"])
    .map((address) => `[${address}]`);
}

/** Names of this machine, in letters that the URL parser folds. */
function names(): string[] {
  const folded = ["localhost", "LOCALHOST", "LocalHost", "localhost.", "a.localhost", "a.b.LOCALHOST."];
  return [
    ...folded,
    "\u24db\u24de\u24d2\u24d0\u24db\u24d7\u24de\u24e2\u24e3",
    "ⅼocalhost",
    "loc%61lhost",
    "ｌocalhost",
  ];
}

function fullWidth(letter: string): string {
  return String.fromCharCode(letter.charCodeAt(0) - 48 + 0xff10);
}
