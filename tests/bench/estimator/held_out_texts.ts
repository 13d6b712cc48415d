/**
 * Texts that no fit ever sees: written for this, by kind. `count.ts` writes them with o200k's counts to
 * `tests/fixtures/o200k_held_out.json`, which the unit tests read.
 */
export const HELD_OUT: Readonly<Record<string, readonly string[]>> = {
  prose: [
    "The ferry was late again, so we sat on the harbour wall and shared what was left of the bread. My sister told me about her new flat, how the heating groans at night and how the neighbour upstairs practises the cello until ten. I did not mind waiting. The light came in low over the water, and for once nobody had anywhere better to be.",
    "Please find attached the revised budget for the spring term. The largest change concerns travel: we now assume that two of the three workshops will be held online, which lowers the cost by roughly a third. I would be grateful for any comments before Thursday, as the committee meets on Friday morning and I would like to send the final version beforehand.",
    "To replace the filter, switch the machine off and let it cool for ten minutes. Press the two tabs at the back, pull the cover towards you and lift out the old cartridge. Rinse the new one under cold water until the water runs clear, then push it in until it clicks. The warning light goes out after the next full cycle.",
    "I can look into that for you. From what you describe, the job fails only when the input file is empty, which suggests that the parser never reaches the branch that sets the header. Let me read the code first and run the tests once; then I will propose a small change and explain why I think it is the right one.",
  ],
  code: [
    'def merge_intervals(intervals):\n    """Return the union of closed intervals as a sorted list."""\n    merged = []\n    for start, end in sorted(intervals):\n        if merged and start <= merged[-1][1]:\n            merged[-1] = (merged[-1][0], max(merged[-1][1], end))\n        else:\n            merged.append((start, end))\n    return merged\n\n\nif __name__ == "__main__":\n    print(merge_intervals([(1, 4), (3, 6), (8, 9)]))\n',
    'func (s *Server) handleUpload(w http.ResponseWriter, r *http.Request) {\n\tif err := r.ParseMultipartForm(s.maxBytes); err != nil {\n\t\thttp.Error(w, "bad form: "+err.Error(), http.StatusBadRequest)\n\t\treturn\n\t}\n\tfile, header, err := r.FormFile("document")\n\tif err != nil {\n\t\thttp.Error(w, "no document", http.StatusBadRequest)\n\t\treturn\n\t}\n\tdefer file.Close()\n\tlog.Printf("received %s (%d bytes)", header.Filename, header.Size)\n}\n',
    "export class LeastRecentlyUsed<Key, Value> {\n  readonly #entries = new Map<Key, Value>();\n  constructor(readonly capacity: number) {\n    if (capacity < 1) throw new RangeError(`Cannot keep ${capacity} entries`);\n  }\n  get(key: Key): Value | undefined {\n    const value = this.#entries.get(key);\n    if (value === undefined) return undefined;\n    this.#entries.delete(key);\n    this.#entries.set(key, value);\n    return value;\n  }\n}\n",
    "SELECT c.name, COUNT(o.id) AS orders, SUM(o.total) AS revenue\nFROM customers c\nLEFT JOIN orders o ON o.customer_id = c.id AND o.created_at >= DATE '2026-01-01'\nWHERE c.country IN ('DE', 'AT', 'CH')\nGROUP BY c.name\nHAVING SUM(o.total) > 1000\nORDER BY revenue DESC\nLIMIT 20;\n",
    "#[derive(Debug, Clone)]\npub struct Retry {\n    pub attempts: u32,\n    pub base: Duration,\n}\n\nimpl Retry {\n    pub fn delay(&self, attempt: u32) -> Option<Duration> {\n        if attempt >= self.attempts {\n            return None;\n        }\n        Some(self.base * 2u32.saturating_pow(attempt))\n    }\n}\n",
  ],
  json: [
    '{"id":"evt_8842","type":"invoice.paid","created":1763712000,"data":{"invoice":{"number":"2026-0117","amount_due":12900,"currency":"eur","customer":{"email":"accounts@example.org","name":"Brightwater Ltd"},"lines":[{"description":"Support, monthly","quantity":1,"unit_amount":9900},{"description":"Extra seats","quantity":3,"unit_amount":1000}]}},"livemode":false}',
    '{\n  "name": "weather-station",\n  "sensors": [\n    { "id": "t-1", "kind": "temperature", "unit": "C", "last": 18.42 },\n    { "id": "h-1", "kind": "humidity", "unit": "%", "last": 61 },\n    { "id": "w-3", "kind": "wind", "unit": "m/s", "last": 4.7 }\n  ],\n  "location": { "lat": 54.3233, "lon": 10.1394, "altitude_m": 12 },\n  "online": true,\n  "owner": null\n}',
    '[{"path":"src/index.ts","additions":12,"deletions":3,"status":"modified"},{"path":"README.md","additions":1,"deletions":1,"status":"modified"},{"path":"test/index.test.ts","additions":44,"deletions":0,"status":"added"},{"path":"docs/old-guide.md","additions":0,"deletions":120,"status":"removed"}]',
  ],
  logs: [
    "2026-11-21T09:14:02.118Z INFO  http.server listening on 127.0.0.1:8484\n2026-11-21T09:14:07.530Z INFO  http.request GET /v1/runs/run_19 200 4.1ms\n2026-11-21T09:14:07.902Z WARN  store.sqlite slow commit: 212 ms for 64 entries\n2026-11-21T09:14:09.004Z ERROR provider.openai request failed: 429 Too Many Requests, retrying in 2.0 s (attempt 1 of 3)\n2026-11-21T09:14:11.260Z INFO  provider.openai request succeeded after 1 retry",
    "Nov 21 03:10:44 web-2 systemd[1]: Starting Daily apt upgrade and clean activities...\nNov 21 03:10:51 web-2 sshd[20411]: Accepted publickey for deploy from 10.4.0.17 port 51522 ssh2\nNov 21 03:11:02 web-2 kernel: [88123.441212] eth0: link up, 1000 Mbps, full duplex\nNov 21 03:12:30 web-2 nginx[913]: 2026/11/21 03:12:30 [error] 913#0: *4411 connect() failed (111: Connection refused) while connecting to upstream",
    'Traceback (most recent call last):\n  File "/srv/app/worker.py", line 88, in run\n    job.execute()\n  File "/srv/app/jobs/mail.py", line 31, in execute\n    self.client.send(self.to, self.body)\n  File "/usr/lib/python3.11/smtplib.py", line 891, in sendmail\n    raise SMTPRecipientsRefused(senderrs)\nsmtplib.SMTPRecipientsRefused: {\'nobody@example.org\': (550, b\'No such user here\')}',
  ],
  base64: [
    "UHJlYW1wIGlzIGFuIGVkZ2UgcnVudGltZSBmb3IgYWdlbnQgbW9kdWxlczogb25lIGJpbmFyeS4gUG9zdCBhIHBsYW4gYW5kIGEgcHJvbXB0LCBnZXQgYW4gYWdlbnQu4oCcUXVvdGVk4oCdIHRleHQgd2l0aCBhIGZldyBtYXJrcyDDpMO2w7wgYW5kIG51bWJlcnMgMTIzNDU2Nzg5MC4=",
    "iVBORw0KGgoAAAANSUhEUgAAABAAAAAQCAYAAAAf8/9hAAABPElEQVR42p2TO07DQBCGv1nbcZwEkUhIUCAaCkTHAeAO3IAr0HIFbsARuAEnoKKgQIiHhBLs2Ot9UCR+xHYeMNLKu6P5/3/+2VlhwcyzXLq7uzLs9QTA87zd3d0dl8vlcRRF9wAisgVgbW0tnZmZuQMQkcMVQRDEt7e34fX19QNAFEXx2tra+kKhcKOqDwBRFMWqegMgIh+ISBgEwYaI7AGo6rWq3gJ0Op1VEdkHsNZ+AURR9AmQTqe3rLVfAO12OwQA",
  ],
  chinese: [
    "下班的时候外面还在下雨，我忘了带伞，只好在公司楼下的便利店里等了一会儿。店员认识我，笑着问我要不要先喝杯热咖啡。我给妻子发了条微信，说可能会晚半个小时到家，让她和孩子先吃饭，不用等我。她回了一个生气的表情，又马上说锅里给我留了汤。",
    "你好，我上周在你们网站买了一双鞋，尺码有点小，想换大一号的。订单号我已经填在下面了，鞋子只在家里试过一次，包装盒也都还在。请问换货的运费由谁来承担？如果没有大一号的，能不能直接退款到原来的支付账户？谢谢，麻烦尽快回复。",
    "这道菜其实很简单，先把土豆切成丝，用清水泡十分钟，把多余的淀粉洗掉。锅里放一点油，等油热了以后加入蒜末和干辣椒，炒出香味再放土豆丝，大火快炒两分钟，最后加盐和醋就可以出锅了。记住千万不要炒太久，不然就不脆了。",
    "经过三个月的测试，我们发现新系统在高峰时段的响应时间比旧系统缩短了百分之四十左右，但是内存占用明显增加。建议下一阶段重点优化缓存策略，同时增加监控指标，以便及时发现异常。相关负责人需要在本月底之前提交详细的改进方案和时间安排。",
    "小时候每到夏天，爷爷都会带我去河边钓鱼。他总是起得很早，天还没亮就把鱼竿和水桶准备好了。我那时候没有耐心，坐不了多久就想去抓蜻蜓，爷爷也不生气，只是让我小心别掉进水里。现在想起来，那大概是我最快乐的一段日子。",
  ],
  russian: [
    "Вчера вечером мы наконец собрались всей семьёй на даче. Папа жарил шашлык, мама резала салат, а дети бегали по саду и ели малину прямо с куста. Потом пошёл дождь, и мы перебрались на веранду пить чай с вареньем. Давно мне не было так хорошо и спокойно.",
    "Здравствуйте! Я заказывал у вас чайник две недели назад, но посылка до сих пор не пришла. На сайте написано, что она в пути, а по телефону никто не отвечает. Скажите, пожалуйста, когда мне её ждать, и можно ли вернуть деньги, если она потерялась?",
    "Мне кажется, ты слишком много работаешь. Посмотри на себя: ты почти не спишь, ешь что попало и всё время думаешь о своих задачах. Давай в выходные просто поедем куда-нибудь за город, без телефонов и ноутбуков. Погуляем, поговорим, отдохнём как люди.",
    "В новой версии программы исправлена ошибка, из-за которой файл настроек не сохранялся при закрытии окна. Кроме того, поиск теперь работает быстрее, а список последних документов можно очистить одной кнопкой. Перед обновлением рекомендуем сделать резервную копию данных.",
  ],
  japanese: [
    "今朝は少し早く起きたので、駅まで歩いて行くことにしました。公園の桜はもう散っていましたが、代わりに小さな白い花がたくさん咲いていました。途中のパン屋さんで焼きたてのクロワッサンを買って、会社で食べました。たまにはこういう朝もいいですね。",
    "お問い合わせありがとうございます。ご注文いただいた商品は、昨日の夕方に発送いたしました。通常は二日から三日ほどでお届けできますが、大雪の影響で遅れる可能性がございます。ご不便をおかけしますが、もうしばらくお待ちください。",
    "このプログラムは、設定ファイルを読み込んで、必要なサーバーに順番に接続します。接続に失敗した場合は、少し待ってからもう一度試します。三回失敗したら、エラーをログに書いて終了します。詳しいことは説明書を見てください。",
  ],
  korean: [
    "어제 친구랑 오랜만에 영화를 봤는데 생각보다 너무 재미있었어. 보고 나서 근처 식당에서 떡볶이를 먹으면서 두 시간이나 얘기했어. 요즘 회사 일이 바빠서 힘들었는데 기분이 많이 좋아졌어. 다음 주말에는 우리 집에서 같이 저녁 만들어 먹기로 했어.",
    "안녕하세요. 지난주에 구입한 가방의 지퍼가 고장 나서 연락드립니다. 사용한 지 사흘밖에 되지 않았는데 잘 열리지 않습니다. 교환이나 환불이 가능한지 알려 주시면 감사하겠습니다. 영수증과 사진을 함께 첨부합니다.",
    "이 함수는 목록에서 가장 큰 값을 찾아서 돌려줍니다. 목록이 비어 있으면 오류를 던지므로 먼저 길이를 확인해야 합니다. 값이 같은 항목이 여러 개 있으면 맨 앞에 있는 것을 고릅니다. 자세한 내용은 문서를 참고하세요.",
  ],
  emoji: [
    "We did it!! 🎉🎉🎉 release is out 🚀 thanks everyone 🙏❤️ drinks on me tonight 🍻😄\nno way 😱😱 that was fast 🏃💨\nhaha 😂😂😂 see you there 👋🌃",
    "✅ build\n✅ lint\n❌ e2e tests 😬\n⚠️ coverage dropped to 81 % 📉\n🔧 fixing it now, give me ten minutes ⏳☕️\n🙃 why is it always Friday 🤦‍♀️",
    "Happy birthday Nora 🎂🎈🥳 hope you have a wonderful day 🌸☀️ and lots of cake 🍰😋 hugs from all of us 🤗👨‍👩‍👧‍👦💕",
  ],
};
