/**
 * Everyday texts written for the fit, in languages whose words are not used in a random order (the word lists of
 * found_texts.ts give the vocabulary, these what stands beside what). Not the texts the fit is judged by.
 */
export const NATURAL: Readonly<Record<string, readonly string[]>> = {
  chinese: [
    "早上七点，妈妈叫我起床。我不想起来，因为昨天晚上看电视看到很晚。她说再不起来就要迟到了，我只好穿好衣服去刷牙洗脸。早饭是牛奶和面包，还有一个鸡蛋。吃完饭我背上书包就往学校跑。",
    "您好，请问这个房间还能再便宜一点吗？我们打算住五天，一共两个大人和一个孩子。如果包含早餐的话就更好了。我们大概下午三点左右到，需要提前付钱吗？附近有没有地铁站？",
    "我觉得这个问题没有那么复杂。你先检查一下网络是不是正常，然后重新启动电脑试试看。如果还是不行，就把错误信息截图发给我，我帮你看看到底是哪里出了问题。不用着急，慢慢来。",
    "他在北京工作了十多年，去年才回到老家。刚开始的时候很不习惯，觉得这里什么都慢，朋友也少。可是时间长了，他发现小城市也有小城市的好处，空气好，房价低，每天下班还能陪陪父母。",
    "会议决定，从下个月开始实行新的考勤制度。所有员工应当在上午九点之前到达公司，迟到三次以上的将影响年终奖金。如果需要在家办公，必须提前一天向部门经理申请，并得到书面同意。",
    "我们公司主要为中小企业提供数据分析服务，目前已经有两百多家客户。今年我们希望进一步扩大市场，同时提高产品的质量和用户体验。为此，我们正在招聘有经验的工程师和设计师。",
    "那天晚上月亮特别亮，我们几个人坐在海边聊天。有人弹起了吉他，大家就跟着一起唱歌。后来风大了，有点冷，我们才慢慢走回去。路上谁也没有说话，好像都不愿意让这一天结束。",
    "怎么减肥才健康？首先要注意饮食，少吃油炸和甜的东西，多吃蔬菜水果。其次要坚持运动，每天至少走半个小时。最重要的是不要急，也不要相信什么一个星期瘦十斤的广告，那样对身体不好。",
  ],
  russian: [
    "Утром я проснулся поздно и сразу понял, что опаздываю на работу. Быстро умылся, выпил кофе и выбежал из дома. На улице было холодно, шёл снег. Автобус, конечно, ушёл прямо перед моим носом, и мне пришлось ждать ещё двадцать минут.",
    "Скажите, пожалуйста, как пройти к вокзалу? Идите прямо до светофора, потом поверните налево и ещё минут пять по этой улице. Там увидите большое здание с часами, это и есть вокзал. Но лучше сядьте на трамвай, так будет быстрее.",
    "Бабушка всегда говорила, что хлеб надо печь самому. Она вставала рано, ставила тесто и никому не давала к нему подходить. К обеду по всему дому шёл такой запах, что мы не могли дождаться, когда она наконец позовёт нас к столу.",
    "Я не знаю, что ему сказать. Он обещал позвонить ещё в понедельник, а сегодня уже пятница. Может быть, у него что-то случилось, а может, он просто забыл. В любом случае ждать больше нельзя, нужно решать без него.",
    "Наша компания ищет опытного бухгалтера. Мы предлагаем официальное оформление, хорошую зарплату и дружный коллектив. Опыт работы от трёх лет. Резюме присылайте на почту, мы обязательно ответим всем кандидатам в течение недели.",
    "Если приложение не запускается, проверьте, установлена ли последняя версия. Откройте настройки, выберите пункт «Обновление» и нажмите кнопку «Проверить». После этого перезагрузите телефон. Если это не помогло, напишите в службу поддержки.",
    "Городской совет принял решение о ремонте дорог в центре. Работы начнутся в мае и продлятся до конца лета. На это время движение по главной улице будет ограничено, жителям советуют пользоваться метро и заранее планировать свои поездки.",
    "Осенью в лесу тихо и грустно. Листья падают на мокрую землю, птицы улетают на юг, и только иногда слышно, как где-то далеко стучит дятел. Я люблю это время: можно идти по тропинке и ни о чём не думать.",
  ],
  japanese: [
    "昨日は友達と一緒に映画を見に行きました。とても面白かったけど、ちょっと長かったです。その後、近くの喫茶店でコーヒーを飲みながら、いろいろな話をしました。夜は家に帰って、すぐに寝てしまいました。",
    "すみません、この電車は新宿に止まりますか。はい、止まります。あと三つ目の駅です。ありがとうございます。ところで、西口から出たほうがいいですか、それとも東口のほうが近いですか。",
    "子供のころ、夏休みになると毎年田舎のおばあちゃんの家に行きました。朝から川で泳いだり、虫を取ったりして、夕方になるとみんなでスイカを食べました。あのころのことは今でもよく思い出します。",
    "会議の資料を添付しましたので、ご確認ください。変更した部分は赤い字で書いてあります。何か問題があれば、今週の金曜日までに連絡していただけると助かります。よろしくお願いいたします。",
    "このボタンを押すと、新しい画面が開きます。名前とメールアドレスを入力して、「次へ」を選んでください。パスワードを忘れた場合は、下のリンクから変更できます。わからないことがあったら、いつでも聞いてください。",
    "料理はあまり得意ではないけれど、カレーだけは自信があります。玉ねぎをゆっくり炒めて、肉と野菜を入れて、水を加えて三十分ぐらい煮ます。最後にルーを入れて、少しチョコレートを足すのが秘密です。",
    "彼は何も言わずに部屋を出て行った。窓の外では雨が静かに降り続いていた。私はしばらくそこに立ったまま、どうすればいいのかわからなかった。やがて時計が九時を打った。",
    "政府は来年度から新しい制度を始めると発表しました。この制度では、小さな子供がいる家庭に毎月一定の金額が支払われます。ただし、収入が多い家庭は対象にならないということです。",
  ],
  korean: [
    "오늘 아침에 늦게 일어나서 버스를 놓쳤어요. 그래서 택시를 타고 회사에 갔는데 길이 너무 막혀서 결국 지각했어요. 부장님한테 혼났지만 점심은 맛있는 걸 먹어서 기분이 나아졌어요.",
    "저기요, 여기 근처에 약국이 있나요? 네, 저 횡단보도를 건너서 왼쪽으로 조금만 가시면 있어요. 그런데 지금 시간이면 문을 닫았을지도 몰라요. 내일 아침에 다시 가 보시는 게 좋겠어요.",
    "어릴 때 할머니 집에 가면 항상 따뜻한 밥과 된장찌개가 있었다. 할머니는 내가 밥을 먹는 모습을 보면서 웃으셨다. 지금은 그 집도 없어지고 할머니도 안 계시지만 그 맛은 아직도 잊을 수 없다.",
    "파일을 저장하려면 위쪽 메뉴에서 저장 단추를 누르세요. 이름을 바꾸고 싶으면 다른 이름으로 저장을 선택하면 됩니다. 문제가 계속되면 프로그램을 다시 시작하거나 관리자에게 문의하시기 바랍니다.",
    "정부는 내년부터 청년들을 위한 주택 지원을 늘리기로 했다고 밝혔다. 이번 계획에 따르면 소득이 낮은 사람들이 먼저 혜택을 받게 된다. 하지만 예산이 충분하지 않다는 지적도 나오고 있다.",
  ],
  json: [
    '{"user":{"id":48213,"login":"mkowalski","full_name":"Marek Kowalski","avatar":"https://avatars.example.com/u/48213?v=4","bio":null,"followers":127},"repository":"parser-combinators","stars":2391,"topics":["parsing","haskell","compiler"],"license":{"spdx_id":"BSD-3-Clause"},"pushed_at":"2026-10-02T18:44:09Z","archived":false}',
    '{"jsonrpc":"2.0","id":7,"result":{"content":[{"type":"text","text":"Found 3 matches in 2 files"}],"isError":false,"_meta":{"elapsedMs":41.7,"truncated":false}}}',
    '[{"sku":"LMP-0042","title":"Desk lamp, brass","price":{"value":"49.90","currency":"EUR"},"stock":17,"dimensions":{"h":42.5,"w":18,"d":18}},{"sku":"CHR-1180","title":"Oak chair","price":{"value":"129.00","currency":"EUR"},"stock":0,"dimensions":{"h":88,"w":45.5,"d":52}}]',
    '{\n  "compilerOptions": {\n    "target": "ES2022",\n    "module": "NodeNext",\n    "strict": true,\n    "outDir": "dist",\n    "paths": { "@app/*": ["./src/*"] }\n  },\n  "include": ["src/**/*.ts"],\n  "exclude": ["node_modules", "**/*.spec.ts"]\n}',
    '{"type":"FeatureCollection","features":[{"type":"Feature","geometry":{"type":"Point","coordinates":[13.40495,52.52001]},"properties":{"name":"Berlin","population":3677472}},{"type":"Feature","geometry":{"type":"Point","coordinates":[-0.12776,51.50735]},"properties":{"name":"London","population":8799800}}]}',
    '{"model":"small-1","messages":[{"role":"system","content":"You are a careful assistant."},{"role":"user","content":"Summarise the attached report in three sentences."}],"temperature":0.2,"max_tokens":400,"stream":true,"tools":[{"type":"function","function":{"name":"search_documents","description":"Full-text search","parameters":{"type":"object","properties":{"query":{"type":"string"},"limit":{"type":"integer","minimum":1}},"required":["query"]}}}]}',
  ],
  prose: [
    "I have been meaning to write to you since we got back, but the garden took over. The beans came up all at once, and then the neighbours' dog dug out half of them. We laughed about it afterwards. How is the new job? I hope they let you leave on time now and then.",
    "The committee agreed that the present rules are difficult to apply in practice. Several members pointed out that small organisations cannot be expected to keep the same records as large ones. It was decided to prepare a shorter version and to test it for one year before any further step is taken.",
    "Sure, here is a short plan. First we look at the failing test and reproduce the problem locally. Then we check which change introduced it. If it turns out to be a timing issue, we replace the fixed delay with a proper wait. I'll keep you posted and won't push anything without asking.",
    "When the train stopped between two stations, nobody looked up at first. Then the lights went out, and a child began to ask questions in a loud, clear voice. An old man answered each of them patiently, until the whole carriage was listening and smiling in the dark.",
  ],
};
