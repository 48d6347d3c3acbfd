# ruff: noqa: E501 -- lines of logs are as long as they are
"""In the style of trainers of models that see."""

from __future__ import annotations

from .form import Printed, loss_at


def detectron2() -> Printed:
    out = Printed()
    for i in range(19, 819, 20):
        loss = loss_at(i)
        out.text += f"[05/18 10:12:{i % 60:02d}] d2.utils.events INFO:  eta: {'1 day, ' if i < 200 else ''}0:{i % 60:02d}:23  iter: {i}  total_loss: {loss:.4g}  loss_cls: 0.5  loss_box_reg: 0.3{i % 10}  time: 0.3{i % 10}  data_time: 0.01  lr: 0.0{i % 10}  max_mem: 4000M\n"
        out.train.append((i, float(f"{loss:.4g}")))
    return out


def mmdetection() -> Printed:
    out = Printed()
    for epoch in range(1, 4):
        for i in range(50, 201, 50):
            step = (epoch - 1) * 210 + i
            loss = loss_at(step)
            out.text += f"2021-10-10 12:00:{i % 60:02d},123 - mmdet - INFO - Epoch [{epoch}][{i}/210]\tlr: 2.000e-02, eta: 1 day, 2:03:{i % 60:02d}, time: 0.9{epoch}, data_time: 0.05, memory: 3900, loss_rpn_cls: 0.1{i % 10}, loss_cls: 0.3, acc: 92.1, loss: {loss:.4f}\n"
            out.train.append((step, loss))
        out.text += f"2021-10-10 12:30:00,123 - mmdet - INFO - Epoch(val) [{epoch}][40]\tbbox_mAP: 0.3{epoch}, bbox_mAP_50: 0.5{epoch}\n"
    return out


def mmengine() -> Printed:
    out = Printed()
    for i in range(50, 1001, 50):
        loss = loss_at(i)
        out.text += f"10/10 12:00:{i % 60:02d} - mmengine - INFO - Iter(train) [{i:5d}/1000]  lr: 1.0e-03  eta: 0:10:{i % 60:02d}  time: 0.51{i % 10}  data_time: 0.01  memory: 4000  loss: {loss:.4f}  decode.loss_ce: 0.5\n"
        out.train.append((i, loss))
        if i % 200 == 0:
            out.text += f"10/10 12:30:00 - mmengine - INFO - Iter(val) [40/40]    aAcc: 80.{i % 100}  mIoU: 60.{i % 100}  data_time: 0.01  time: 0.2\n"
    return out


def paddle_seg() -> Printed:
    out = Printed()
    for i in range(10, 410, 10):
        loss = loss_at(i)
        out.text += f"2022-01-01 10:00:{i % 60:02d} [INFO]\t[TRAIN] epoch: {1 + i // 150}, iter: {i}/1000, loss: {loss:.4f}, lr: 0.00{i % 9 + 1}, batch_cost: 0.2{i % 10}, reader_cost: 0.001, ips: 20.{i % 10} samples/sec | ETA 00:10:{i % 60:02d}\n"
        out.train.append((i, loss))
        if i % 100 == 0:
            out.text += f"2022-01-01 10:30:00 [INFO]\t[EVAL] #Images: 500 mIoU: 0.5{i % 97} Acc: 0.9 Kappa: 0.8\n"
    return out


def basicsr() -> Printed:
    out = Printed()
    for i in range(100, 4001, 100):
        loss = loss_at(i // 50)
        out.text += f"2022-01-01 10:00:{i // 100 % 60:02d},123 INFO: [RRDB..][epoch:{i // 1000:3d}, iter:{149900 + i:8,}, lr:(2.000e-04,)] [eta: 3 days, 2:10:{i // 100 % 60:02d}, time (data): 0.50 (0.01)] l_pix: {loss:.4e} \n"
    return out


def caffe() -> Printed:
    out = Printed()
    for i in range(0, 2001, 100):
        loss = loss_at(i // 20)
        if i % 500 == 0:
            out.text += f"I0518 10:00:{i // 100 % 60:02d}.000001  1234 solver.cpp:330] Iteration {i}, Testing net (#0)\nI0518 10:00:{i // 100 % 60:02d}.100001  1234 solver.cpp:397]     Test net output #0: accuracy = 0.5{i // 100:02d}\nI0518 10:00:01.100002  1234 solver.cpp:397]     Test net output #1: loss = {loss + 0.1:.4f} (* 1 = {loss + 0.1:.4f} loss)\n"
            out.evaluation.append((i, round(loss + 0.1, 4)))
        out.text += f"I0518 10:01:{i // 100 % 60:02d}.000001  1234 solver.cpp:218] Iteration {i} (50.1 iter/s, 2.0s/100 iters), loss = {loss}\nI0518 10:01:01.000002  1234 solver.cpp:237]     Train net output #0: loss = {loss + 0.01:.4f} (* 1 = {loss + 0.01:.4f} loss)\nI0518 10:01:01.000003  1234 sgd_solver.cpp:105] Iteration {i}, lr = 0.01\n"
        out.train.append((i, loss))
    return out


def pytorch_mnist() -> Printed:
    out = Printed()
    for epoch in range(1, 4):
        for i in range(0, 60000, 6400):
            loss = loss_at(epoch * 10 + i // 6400)
            out.text += f"Train Epoch: {epoch} [{i}/60000 ({i / 600:.0f}%)]\tLoss: {loss:.6f}\n"
            out.train.append(((epoch - 1) * 60000 + i, loss))
        out.text += f"\nTest set: Average loss: {loss_at(epoch * 10):.4f}, Accuracy: 9{500 + epoch}/10000 (95%)\n\n"
        out.evaluation.append(((epoch - 1) * 60000 + 57600, loss_at(epoch * 10)))
    return out


def pytorch_imagenet() -> Printed:
    out = Printed()
    for epoch in range(3):
        for i in range(0, 100, 10):
            loss = loss_at(epoch * 100 + i)
            out.text += f"Epoch: [{epoch}][{i:3d}/100]\tTime  0.2{i % 7} ( 0.250)\tData  0.000 ( 0.020)\tLoss {loss:.4e} ({loss + 0.1:.4e})\tAcc@1  1{i % 9}.50 ( 10.12)\tAcc@5  3{i % 9}.50 ( 31.12)\n"
            out.train.append((epoch * 100 + i, loss))
        out.evaluation.append((epoch * 100 + 90, float(f"{loss_at(epoch * 100):.4e}")))
        out.text += f"Test: [ 0/10]\tTime  1.2 ( 1.2)\tLoss {loss_at(epoch * 100):.4e} (1.0)\tAcc@1  20.5 ( 20.5)\n * Acc@1 2{epoch}.500 Acc@5 4{epoch}.500\n"
    return out


def torchvision() -> Printed:
    out = Printed()
    for epoch in range(3):
        for i in range(0, 100, 10):
            loss = loss_at(epoch * 100 + i)
            out.text += f"Epoch: [{epoch}]  [ {i:2d}/100]  eta: 0:0{i % 6}:11  lr: 0.02  loss: {loss:.4f} ({loss + 0.2:.4f})  loss_classifier: 0.3 (0.4)  time: 0.2{i % 9}  data: 0.01  max mem: 3000\n"
            out.train.append((epoch * 100 + i, loss))
        out.text += f"Epoch: [{epoch}] Total time: 0:00:3{epoch} (0.3 s / it)\nTest:  [  0/50]  eta: 0:00:10  model_time: 0.2 (0.2)  time: 0.3  data: 0.1  max mem: 3000\n"
    return out


def ultralytics() -> Printed:
    out = Printed()
    for epoch in range(1, 11):
        out.text += "\n      Epoch    GPU_mem   box_loss   cls_loss   dfl_loss  Instances       Size\n"
        for done in (50, 100):
            out.text += f"\r     {epoch:2d}/10      2.5G     {loss_at(epoch):.3f}      {loss_at(epoch) + 1:.3f}      1.1{epoch:02d}         2{epoch % 10}        640: {done}%|{'█' * (done // 10)}| {done}/100 [00:1{epoch % 10}<00:00,  9.1it/s]"
        out.text += f"\n                 Class     Images  Instances      Box(P          R      mAP50  mAP50-95): 100%|██████████| 4/4 [00:01<00:00,  3.1it/s]\n                   all        128        929      0.6{epoch:02d}      0.5{epoch:02d}      0.6{epoch:02d}      0.4{epoch:02d}\n"
    return out
