/** Ids: a prefix and 131 random bits, so that nobody guesses another's (threats T23). */
const ALPHABET = "0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz";

/** Characters behind the prefix: 22 of 62 are 131 bits. */
const LENGTH = 22;

/** Random bytes in stock: asking for them one id at a time costs more than the id. */
const stock = new Uint8Array(4096);
let used = stock.length;

/** Character codes of the id that is being made. */
const drawn = new Array<number>(LENGTH).fill(0);

/** Returns a fresh id such as `run_k3…`: letters and digits only, so that a double click selects it whole. */
export function newId(prefix: string): string {
  for (let length = 0; length < LENGTH;) {
    if (used === stock.length) {
      crypto.getRandomValues(stock);
      used = 0;
    }
    const value = stock[used]! & 63;
    stock[used++] = 0;
    if (value >= ALPHABET.length) continue; // drawn again: every character is as likely as any other
    drawn[length++] = ALPHABET.charCodeAt(value);
  }
  return `${prefix}_${String.fromCharCode(...drawn)}`; // at once: a text that grows by a character is 20 texts
}

/** Returns an id as it may stand in a message: short and printable. */
export function printableId(id: string): string {
  return id.slice(0, 80).replace(/[^\x20-\x7e]/g, "?");
}
